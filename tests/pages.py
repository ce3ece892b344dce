"""The examples in pages of the documentation."""

import re

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
"""A code block: its language and its text."""


def blocks_of(page: str, language: str) -> list[str]:
    """The texts of all code blocks in a language."""
    return [text for block_language, text in FENCE.findall(page) if block_language == language]


def block_of(page: str, language: str) -> str:
    """The text of the first code block in a language."""
    return blocks_of(page, language)[0]

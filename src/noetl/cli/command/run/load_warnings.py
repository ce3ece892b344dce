"""What `noetl validate` would warn about, said where playbooks are run."""

from collections.abc import Callable

from noetl.cli.console import plain_paint
from noetl.cli.problem_text import problems_text
from noetl.dsl.document.problem import Problem
from noetl.engine.catalog.playbooks import PlaybookDocument


class LoadWarnings:
    """Says the warnings about each playbook that is read; `problems` are all of them, for JSON."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.problems: list[Problem] = []

    def observe(self, document: PlaybookDocument) -> None:
        warnings = document.playbook.warnings
        if warnings:
            self.problems += warnings
            self._say(problems_text(warnings, document.source.text, paint=plain_paint))

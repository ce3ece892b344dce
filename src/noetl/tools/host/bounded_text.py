"""Texts cut to a length, after secrets were masked in them: nobody knows a part of one afterwards."""

from noetl.ports.tool import TextMask

MAX_MESSAGE = 8_192
"""Characters of what an exception of foreign code says."""
MAX_EXCERPT = 200
"""Characters that a message quotes of a text."""
MARGIN = 65_536
"""Characters beyond a cut that are looked at, because a secret may lie across it."""


def shorten_text(text: str, limit: int, mask: TextMask) -> str:
    """At most `limit` characters, on one line: the beginning of the text."""
    masked = mask.mask_excerpt(text[: limit + MARGIN])
    plain = " ".join(masked.encode(errors="replace").decode().split())
    complete = len(plain) <= limit and len(text) <= limit + MARGIN
    return plain if complete else plain[: limit - 1] + "…"


def shorten_middle(text: str, limit: int, mask: TextMask) -> str:
    """At most `limit` characters and a note: the beginning of the text and its end."""
    masked = mask.mask_excerpt(text)
    if len(masked) <= limit:
        return masked
    half = limit // 2
    return f"{masked[:half]}\n… {len(masked) - 2 * half:,} characters left out …\n{masked[-half:]}"


def readable_beginning(data: bytes, limit: int, mask: TextMask) -> str:
    """At most `limit` bytes of a text."""
    masked = mask.mask_excerpt(data[: limit + MARGIN].decode(errors="replace"))
    return masked.encode()[:limit].decode(errors="ignore")


def text_preview(data: bytes, limit: int, mask: TextMask) -> str:
    """The same, with a mark if there is more."""
    text = readable_beginning(data, limit, mask)
    return f"{text}…" if len(data) > limit > 0 else text

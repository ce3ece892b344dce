"""How wide text is, near enough: a picture is drawn without asking for fonts."""

import unicodedata

# Widths of the printable ASCII characters in Roboto, in thousandths of the font size.
_ASCII = (
    *(248, 258, 320, 616, 562, 732, 622, 175, 342, 348, 431, 567, 197, 276, 264, 413),
    *(562, 562, 562, 562, 562, 562, 562, 562, 562, 562, 242, 211, 508, 549, 523, 473),
    *(898, 652, 623, 651, 656, 568, 553, 681, 713, 272, 552, 627, 539, 873, 713, 688),
    *(631, 688, 616, 594, 597, 648, 637, 887, 627, 601, 599, 265, 411, 265, 418, 451),
    *(309, 544, 562, 523, 564, 530, 348, 562, 551, 243, 239, 507, 243, 877, 552, 570),
    *(562, 568, 339, 516, 327, 551, 484, 751, 496, 473, 496, 338, 244, 338, 680),
)
_SLACK = 1.06
"""Other sans-serif fonts are a little wider, and a picture may be shown with any of them."""
_BOLD = 1.04
_LONGEST = 300
"""No line of a picture has room for more characters than this."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width in pixels of a line of text at this font size."""
    total = sum(_ASCII[ord(c) - 32] if " " <= c <= "~" else _other_width(c) for c in text)
    return total / 1000 * size * _SLACK * (_BOLD if bold else 1.0)


def fit_text(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """As much of the text as fits, with an ellipsis for the rest."""
    if len(text) <= _LONGEST and text_width(text, size, bold=bold) <= room:
        return text
    fitting = text[:_LONGEST]
    while fitting and text_width(fitting + "…", size, bold=bold) > room:
        fitting = fitting[:-1]
    # A joiner or a mark at the end would join the ellipsis.
    while fitting and (fitting[-1] == "\u200d" or unicodedata.combining(fitting[-1])):
        fitting = fitting[:-1]
    return fitting.rstrip() + "…"


def wrap_text(text: str, room: float, size: float, *, lines: int) -> tuple[str, ...]:
    """The text on at most `lines` lines, broken at spaces, the last one shortened."""
    words = text[: _LONGEST * lines].split()
    result: list[str] = []
    while words and len(result) < lines - 1:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size) <= room:
            line = f"{line} {words.pop(0)}"
        result.append(fit_text(line, room, size))
    if words:
        last_line = " ".join(words) + ("…" if len(text) > _LONGEST * lines else "")
        result.append(fit_text(last_line, room, size))
    return tuple(result)


def _other_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Mn"}:
        return 0
    return 1000 if unicodedata.east_asian_width(character) in {"W", "F"} else 640

"""Colours and fonts, the same in every format."""

from typing import NamedTuple

FONTS = "Roboto, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
BACKGROUND = "#f8fafc"
INK = "#0f172a"
MUTED = "#64748b"
EDGE = "#7c8a9d"
FAILURE = "#d32f3b"
DONE = "#15803d"
TAKEN = "#334155"
UNTAKEN = "#94a3b8"
FORK = "#4f46e5"
TEXTS = {
    "name": INK,
    "desc": MUTED,
    "note": "#334155",
    "badge": "#334155",
    "detail": MUTED,
    "task": "#1e293b",
    "kind": MUTED,
    "mark": "#475569",
}


class Tint(NamedTuple):
    """How a card looks; `line` is the width of its border."""

    fill: str
    stroke: str
    line: float


PLAIN = Tint("#ffffff", "#b8c4d3", 1.2)
STATES = {
    "completed": Tint("#ecfdf3", "#22a565", 1.6),
    "failed": Tint("#fef1f1", "#d32f3b", 2.0),
    "running": Tint("#eef5ff", "#2b74e4", 2.0),
    "waiting": Tint("#fff8e6", "#d99a10", 1.6),
    "not_admitted": Tint("#fdf6ea", "#b98a3e", 1.4),
    "cancelled": Tint("#f1f3f6", "#7c8797", 1.4),
    "skipped": Tint("#f5f3ff", "#8b7bb8", 1.4),
}
ROLES = {
    "start": Tint("#ffffff", "#0f766e", 1.8),
    "end": Tint("#ffffff", "#64748b", 1.8),
    "final": Tint("#ffffff", "#7c3aed", 1.8),
}
PILLS = {
    "start": ("#0f766e", "#ffffff"),
    "end": ("#e2e8f0", "#334155"),
    "final": ("#7c3aed", "#ffffff"),
    "completed": ("#15803d", "#ffffff"),
    "failed": ("#c62430", "#ffffff"),
    "running": ("#1d5fd0", "#ffffff"),
    "waiting": ("#f5c044", "#4a3300"),
    "not admitted": ("#ead9b8", "#5c4212"),
    "cancelled": ("#cbd2dc", "#333d4b"),
    "skipped": ("#ddd6f3", "#3d3163"),
}


def tint_of(state: str | None, roles: tuple[str, ...]) -> Tint:
    """The look of a step: what happened to it if that is known, else the part it plays."""
    if state:
        return STATES.get(state, PLAIN)
    return ROLES[roles[0]] if roles else PLAIN

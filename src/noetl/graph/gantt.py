"""The runs of an execution in time, as one SVG document."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from noetl.graph.palette import BACKGROUND, EDGE, FONTS, INK, MUTED, PLAIN, STATES
from noetl.graph.playbook_text import fit_text
from noetl.graph.time_axis import TimeAxis
from noetl.ports.execution_views import HeatStrip, RunBar, RunPage

MARGIN = 24.0
HEADER = 48.0
NAMES = 180.0
TRACK = 720.0
ROW = 26.0
BAR = 14.0
NOTES = 150.0
_STATUS_TINTS = {"ready": "waiting"}
_MICROS = 1_000_000


def gantt_svg(page: RunPage) -> str:
    """The whole document; equal pages give equal documents."""
    width = round(2 * MARGIN + NAMES + TRACK + NOTES)
    height = round(2 * MARGIN + HEADER + ROW * max(len(page.runs), 1))
    end = page.end if page.end is not None else page.now
    axis = TimeAxis(page.begin, end, page.idle)
    title = f"{page.execution_id}, {_seconds(end - page.begin)}"
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="{BACKGROUND}"/>',
        _text(MARGIN, MARGIN + 14, title, INK, size=15),
        *_folds(axis, height),
        *(part for number, bar in enumerate(page.runs) for part in _row(bar, number, axis, page.now)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _folds(axis: TimeAxis, height: int) -> Iterator[str]:
    for start, stop, idle in axis.folds:
        x = MARGIN + NAMES + (start + stop) / 2 * TRACK
        yield (
            f'<path d="M{x:.1f} {MARGIN + HEADER:.0f}V{height - MARGIN:.0f}" stroke="{EDGE}" '
            'stroke-dasharray="2 4" fill="none"/>'
        )
        yield _text(x, MARGIN + HEADER - 6, f"{_seconds(idle)} idle", MUTED, size=10, anchor="middle")


def _row(bar: RunBar, number: int, axis: TimeAxis, now: int) -> Iterator[str]:
    top = MARGIN + HEADER + number * ROW
    middle = top + ROW / 2 + 4
    end = bar.end if bar.end is not None else now
    tint = STATES.get(_STATUS_TINTS.get(bar.status, bar.status), PLAIN)
    yield _text(MARGIN, middle, fit_text(bar.step, NAMES - 12, 12), INK)
    hint = f"{bar.step} ({bar.run}): {bar.status}, {_seconds(end - bar.begin)}"
    yield f"<g><title>{escape(hint)}</title>"
    yield _bar(axis, bar.begin, end, top, tint.stroke)
    for wait in bar.waits:
        yield _bar(axis, wait.begin, wait.end if wait.end is not None else end, top, "#e2e8f0")
    if bar.loop is not None and bar.loop.heat is not None:
        yield from _heat(bar.loop.heat, axis, top)
    yield "</g>"
    note = _seconds(end - bar.begin)
    if bar.loop is not None:
        note += f" · {bar.loop.succeeded}/{bar.loop.total}"
    if bar.status != "completed":
        note += f" · {bar.status}"
    yield _text(MARGIN + NAMES + TRACK + 12, middle, fit_text(note, NOTES - 12, 12), MUTED)


def _bar(axis: TimeAxis, begin: int, end: int, top: float, fill: str) -> str:
    x, until = axis.position(begin) * TRACK, axis.position(end) * TRACK
    y, width = top + (ROW - BAR) / 2, max(until - x, 2)
    start = MARGIN + NAMES + x
    return f'<rect x="{start:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR:.0f}" rx="2" fill="{fill}"/>'


def _heat(heat: HeatStrip, axis: TimeAxis, top: float) -> Iterator[str]:
    """How many iterations ended when: the darker, the more; red where some failed."""
    most = max(map(sum, zip(heat.succeeded, heat.failed, strict=True)))
    for number, (succeeded, failed) in enumerate(zip(heat.succeeded, heat.failed, strict=True)):
        if not (succeeded or failed):
            continue
        x = axis.position(heat.begin + number * heat.bucket) * TRACK
        until = axis.position(heat.begin + (number + 1) * heat.bucket) * TRACK
        share = 0.25 + 0.75 * (succeeded + failed) / most
        fill = STATES["failed"].stroke if failed else INK
        yield (
            f'<rect x="{MARGIN + NAMES + x:.1f}" y="{top + ROW - 5:.1f}" width="{max(until - x, 1):.1f}" '
            f'height="3" fill="{fill}" fill-opacity="{share:.2f}"/>'
        )


def _text(x: float, y: float, text: str, fill: str, *, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _seconds(micros: int) -> str:
    return f"{max(micros, 0) / _MICROS:,.2f} s"

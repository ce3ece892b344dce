"""Small drawings, each about 11 pixels wide: the font of a picture may lack glyphs for them."""

_STROKE = 'fill="none" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"'
_TURN = "M4 -1.5A4.3 4.3 0 1 0 4.2 1.4M4.4 -4.6V-1.4H1.2"

_DRAWINGS = {
    "admit": '<path d="M0 -5.5L5.5 0L0 5.5L-5.5 0Z" fill="#fbbf24" stroke="#b45309" stroke-width="1.2"/>',
    "join": f'<path d="M-4.5 -5V-3Q-4.5 0 0 0Q4.5 0 4.5 -3V-5M0 0V5" stroke="#0e7490" {_STROKE}/>',
    "loop": f'<path d="{_TURN}" stroke="#7c3aed" {_STROKE}/>',
    "retry": f'<path d="{_TURN}" stroke="#2563eb" {_STROKE}/>',
    "jump": f'<path d="M-2 -5L-5 -2L-2 1M-4.6 -2H1.5Q5 -2 5 1.2V4.5" stroke="#9333ea" {_STROKE}/>',
    "break": '<rect x="-4" y="-4" width="8" height="8" rx="1.5" fill="#64748b"/>',
}


def icon_svg(kind: str, x: float, y: float) -> str:
    """The drawing of this kind with its middle at `x`, `y`."""
    return f'<g transform="translate({x:.1f} {y:.1f})">{_DRAWINGS[kind]}</g>'

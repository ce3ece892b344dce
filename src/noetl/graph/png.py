"""The SVG as PNG, with a font of its own: it also works where no fonts are installed."""

import re
from math import sqrt

from noetl.graph.errors import GraphError

SCALE = 2.0
MOST_PIXELS = 32_000_000
"""Larger pictures are drawn at a smaller scale: 32 million pixels take 128 MB while drawing."""


def png_of(svg: str) -> bytes:
    """Raises GraphError where the extra `png` is not installed."""
    try:
        from font_roboto import font_files  # noqa: PLC0415 -- an optional extra
        from resvg_py import svg_to_bytes  # noqa: PLC0415 -- an optional extra
    except ImportError as error:
        raise GraphError(f"PNG needs the package `{error.name}`: pip install 'noetl[png]'") from None
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    if size is None:
        raise GraphError("the SVG has no size")
    scale = min(SCALE, sqrt(MOST_PIXELS / (int(size[1]) * int(size[2]))))
    fonts = [font_files["Roboto"], font_files["RobotoBold"]]
    # System fonts stay available for scripts that Roboto does not have.
    data = svg_to_bytes(svg_string=svg, font_files=fonts, sans_serif_family="Roboto", zoom=scale)
    return bytes(data)

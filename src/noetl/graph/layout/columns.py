"""A tall drawing is set in columns, as a long text is on a newspaper page."""

from itertools import accumulate
from math import sqrt

from noetl.graph.layout.alignment import align_cells
from noetl.graph.layout.strands import Cell

TALL = 1500.0
"""Below this height nothing is folded."""
ASPECT_RATIO = 1.4
"""The width to height that a folded drawing aims at."""
SHORTEST = 800.0
"""Columns are not made shorter than this on average."""
CHANNEL = 44.0
"""About what lies between two layers."""
GUTTER = 80.0
"""About what lies between two columns."""
TRIES = 3
"""Folding changes widths, and widths the number of columns: so many rounds come near enough."""


def fold_into_columns(layers: list[list[Cell]]) -> list[int]:
    """Aligns the layers, in as many columns as give the drawing a good shape.

    The answer is the column of each layer, from 0. Each column begins at x = 0.
    """
    align_cells(layers)
    column_of = [0] * len(layers)
    heights = [max(cell.room for cell in layer) + CHANNEL for layer in layers]
    total, count = sum(heights), 1
    for _ in range(TRIES if total > TALL else 0):
        # How wide a column will be is known only when it is aligned by itself.
        width = sum(_width(column) for column in _split(layers, column_of)) / count + GUTTER
        better = max(1, min(round(sqrt(ASPECT_RATIO * total / width)), int(total / SHORTEST)))
        if better == count:
            break
        count = better
        cuts = _cuts(layers, heights, count)
        column_of = [sum(1 for cut in cuts if cut <= number) for number in range(len(layers))]
        for column in _split(layers, column_of):
            align_cells(column)
    return column_of


def _split(layers: list[list[Cell]], column_of: list[int]) -> list[list[list[Cell]]]:
    columns: list[list[list[Cell]]] = [[] for _ in range(column_of[-1] + 1)]
    for layer, column in zip(layers, column_of, strict=True):
        columns[column].append(layer)
    return columns


def _width(column: list[list[Cell]]) -> float:
    return max(cell.x + cell.right for layer in column for cell in layer)


def _cuts(layers: list[list[Cell]], heights: list[float], count: int) -> list[int]:
    """The first layers of all columns but the first."""
    share = sum(heights) / count
    tops = [0.0, *accumulate(heights)]
    cuts: list[int] = []
    for column in range(1, count):
        aim = column * share
        # A label stays with the step it leaves, so only a layer of boxes begins a column.
        near = [
            number
            for number in range(cuts[-1] + 1 if cuts else 1, len(layers))
            if abs(tops[number] - aim) < share * 0.3 and any(cell.kind == "box" for cell in layers[number])
        ]
        if near:
            cuts.append(min(near, key=lambda number: (_lines(layers[number]), abs(tops[number] - aim))))
    return cuts


def _lines(layer: list[Cell]) -> int:
    """How many separate lines come down to a layer."""
    return len({strand.net for cell in layer for strand in cell.above})

"""Crossings are counted fast; this holds the count equal to the plain one over all pairs."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.graph.layout import BoxLink, BoxSize
from noetl.graph.layout.layer_order import count_crossings, order_layers
from noetl.graph.layout.layered_graph import Cell, LayeredGraph, Strand, build_layers, rank_boxes

SIDE = 0.4
"""How much further left a line at a box's left side counts."""


def ends_of(strand: Strand) -> tuple[float, float]:
    upper, lower = (
        cell.position - (SIDE if strand.back and cell.kind == "box" else 0)
        for cell in (strand.upper, strand.lower)
    )
    return upper, lower


def crossings_of_all_pairs(layers: list[list[Cell]]) -> int:
    total = 0
    for layer in layers:
        for first, second in combinations([strand for cell in layer for strand in cell.below], 2):
            (upper, lower), (other_upper, other_lower) = ends_of(first), ends_of(second)
            if (upper - other_upper) * (lower - other_lower) < 0:
                total += first.cost * second.cost
    return total


@st.composite
def layered_graphs(draw: st.DrawFn) -> LayeredGraph:
    count = draw(st.integers(2, 12))
    box = st.integers(0, count - 1)
    links = draw(st.lists(st.builds(BoxLink, box, box, st.sampled_from(["flow", "failure"])), max_size=30))
    graph = build_layers([BoxSize(100, 50)] * count, links, rank_boxes(count, links, 0))
    for layer in graph.layers:
        layer[:] = draw(st.permutations(layer))
        for position, cell in enumerate(layer):
            cell.position = position
    return graph


@given(layered_graphs())
@settings(max_examples=300, deadline=None)
def test_crossings_are_those_of_all_pairs_of_lines(graph: LayeredGraph) -> None:
    assert count_crossings(graph.layers) == crossings_of_all_pairs(graph.layers)


@given(layered_graphs())
@settings(max_examples=100, deadline=None)
def test_the_order_that_is_kept_has_the_crossings_that_are_counted(graph: LayeredGraph) -> None:
    order_layers(graph, graph.boxes[0])
    assert count_crossings(graph.layers) == crossings_of_all_pairs(graph.layers)

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document.step_graph import (
    ancestor_masks,
    nodes_on_cycles,
    reachable_nodes,
    reverse_edges,
    strong_components,
)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 9))
    nodes = st.integers(0, size - 1)
    return draw(st.lists(st.lists(nodes, max_size=4), min_size=size, max_size=size))


@given(graphs())
def test_ancestors_are_the_nodes_that_reach_it(after: list[list[int]]) -> None:
    masks = ancestor_masks(after)
    for node in range(len(after)):
        for target in range(len(after)):
            assert bool(masks[target] >> node & 1) == (target in reachable_nodes(after, [node]))


@given(graphs())
def test_components_are_the_nodes_that_reach_each_other(after: list[list[int]]) -> None:
    reach = [reachable_nodes(after, [node]) for node in range(len(after))]
    parts = strong_components(after)
    assert sorted(node for part in parts for node in part) == list(range(len(after)))
    for position, part in enumerate(parts):
        for node in part:
            together = [other for other in reach[node] if node in reach[other]]
            assert sorted(together) == part
            assert all(any(target in earlier for earlier in parts[: position + 1]) for target in after[node])


@given(graphs())
def test_a_node_is_on_a_cycle_if_its_successors_reach_it(after: list[list[int]]) -> None:
    expected = {node for node in range(len(after)) if node in reachable_nodes(after, after[node])}
    assert nodes_on_cycles(after) == expected


def test_reversing_keeps_every_edge() -> None:
    assert reverse_edges([[1, 1], [0], []]) == [[1], [0, 0], []]


def test_a_long_chain_needs_no_deep_stack() -> None:
    length = 5_000
    after = [[node + 1] for node in range(length - 1)] + [[]]
    assert len(strong_components(after)) == length
    assert ancestor_masks(after)[-1].bit_count() == length

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document.step_graph import (
    ancestor_masks,
    forward_order,
    immediate_dominators,
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
def test_ancestors_are_the_nodes_that_reach_it(successors: list[list[int]]) -> None:
    masks = ancestor_masks(successors)
    for node in range(len(successors)):
        for target in range(len(successors)):
            assert bool(masks[target] >> node & 1) == (target in reachable_nodes(successors, [node]))


@given(graphs())
def test_components_are_the_nodes_that_reach_each_other(successors: list[list[int]]) -> None:
    reach = [reachable_nodes(successors, [node]) for node in range(len(successors))]
    components = strong_components(successors)
    assert sorted(node for component in components for node in component) == list(range(len(successors)))
    for index, component in enumerate(components):
        for node in component:
            together = [other for other in reach[node] if node in reach[other]]
            assert sorted(together) == component
            assert all(
                any(target in earlier for earlier in components[: index + 1]) for target in successors[node]
            )


@given(graphs())
def test_a_node_is_on_a_cycle_if_its_successors_reach_it(successors: list[list[int]]) -> None:
    expected = {
        node for node in range(len(successors)) if node in reachable_nodes(successors, successors[node])
    }
    assert nodes_on_cycles(successors) == expected


@given(graphs())
def test_a_dominator_is_the_last_node_that_every_path_passes(successors: list[list[int]]) -> None:
    order = forward_order(successors, 0)
    assert set(order) == reachable_nodes(successors, [0])
    dominators = immediate_dominators(successors, order)
    strict: dict[int, set[int]] = {0: set()}
    for node in order[1:]:
        # Whatever cannot be reached any more once a node is taken out is dominated by it.
        strict[node] = {
            other
            for other in order
            if other != node and (other == 0 or node not in reachable_nodes(_without(successors, other), [0]))
        }
    for node in order[1:]:
        assert strict[node] == {dominators[node]} | strict[dominators[node]]


def _without(successors: list[list[int]], removed: int) -> list[list[int]]:
    return [
        [target for target in targets if removed not in (node, target)]
        for node, targets in enumerate(successors)
    ]


def test_reversing_keeps_every_edge() -> None:
    assert reverse_edges([[1, 1], [0], []]) == [[1], [0, 0], []]


def test_a_long_chain_needs_no_deep_stack() -> None:
    length = 5_000
    successors = [[node + 1] for node in range(length - 1)] + [[]]
    assert len(strong_components(successors)) == length
    assert ancestor_masks(successors)[-1].bit_count() == length

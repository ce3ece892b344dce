"""Whole executions against plain Python: families of playbooks on any input."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noetl
from tests.playbooks import document_of

NUMBERS = st.lists(st.integers(-1000, 1000), max_size=8)
MODES = st.sampled_from(["sequential", "parallel"])
FEW = settings(max_examples=40)


def result(text: str, **workload: Any) -> noetl.Execution:
    return noetl.run(document_of(text.lstrip()), workload, store="sqlite:///:memory:").raise_for_status()


MAP = """
workload: {items: [], mode: sequential}
workflow:
- step: start
  loop: {in: "{{ workload.items }}", iterator: item, spec: {mode: %s, max_in_flight: 3}}
  tool:
  - {name: twice, kind: noop, args: {n: "{{ iter.item * 2 }}"}}
  - {name: plus, kind: noop, args: {n: "{{ _prev.n + iter.index }}", of: "{{ item }}"}}
"""


@pytest.mark.spec("000 §4.3 (2)")
@pytest.mark.spec("000 §7.1")
@given(items=NUMBERS, mode=MODES)
@FEW
def test_a_map_over_a_list(items: list[int], mode: str) -> None:
    expected = [{"n": item * 2 + index, "of": item} for index, item in enumerate(items)]
    assert result(MAP % mode, items=items).result == expected


FILTER = """
workload: {items: [], least: 0}
workflow:
- step: start
  loop: {in: "{{ workload.items }}", iterator: item, spec: {mode: %s, reduce: {kept: append, left: count}}}
  tool:
  - name: test
    kind: noop
    spec:
      policy:
        rules:
        - {when: "{{ item < workload.least }}", then: {do: break, set_ctx: {left: 1}}}
        - else: {then: {do: continue, set_ctx: {kept: "{{ item }}"}}}
  - {name: keep, kind: noop, args: {n: "{{ item }}"}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {kept: "{{ ctx.kept | default([]) }}", left: "{{ ctx.left | default(0) }}"}}
"""


@pytest.mark.spec("000 §6.3 (1)")
@pytest.mark.spec("000 §7.2 (2)")
@given(items=NUMBERS, least=st.integers(-1000, 1000), mode=MODES)
@FEW
def test_a_filter_by_a_guard(items: list[int], least: int, mode: str) -> None:
    passing = [item for item in items if item >= least]
    filtered = result(FILTER % mode, items=items, least=least).result
    assert filtered == {"kept": passing, "left": len(items) - len(passing)}


SUM = """
workload: {items: [], base: 0}
workflow:
- step: start
  tool: {kind: noop, args: {n: "{{ workload.base }}"}, set: {ctx.sum: "{{ outcome.result.n }}"}}
  next: {arcs: [{step: add}]}
- step: add
  loop:
    in: "{{ workload.items }}"
    iterator: item
    spec: {mode: %s, reduce: {sum: sum, most: max, run.least: min}}
  tool: {kind: noop, set: {ctx.sum: "{{ item }}", ctx.most: "{{ item }}", run.least: "{{ item }}"}}
  next: {arcs: [{step: end, args: {least: "{{ run.least | default(none) }}"}}]}
- step: end
  tool: {kind: noop, args: {sum: "{{ ctx.sum }}", most: "{{ ctx.most | default(none) }}", least: "{{ args.least }}"}}
"""


@pytest.mark.spec("000 §7.2 (2)")
@given(items=NUMBERS, base=st.integers(-9, 9), mode=MODES)
@FEW
def test_a_sum_by_a_reducer(items: list[int], base: int, mode: str) -> None:
    totals = result(SUM % mode, items=items, base=base).result
    assert totals == {
        "sum": base + sum(items),
        "most": max(items, default=None),
        "least": min(items, default=None),
    }


ROUTES = """
workload: {n: 0, bounds: [0, 0]}
workflow:
- step: start
  tool: {kind: noop, args: {n: "{{ workload.n }}"}}
  next:
    spec: {mode: %s}
    arcs:
    - {step: low, when: "{{ event.result.n < workload.bounds[0] }}"}
    - {step: high, when: "{{ event.result.n > workload.bounds[1] }}"}
    - {step: rest}
- {step: low, tool: {kind: noop}}
- {step: high, tool: {kind: noop}}
- {step: rest, tool: {kind: noop}}
"""


@pytest.mark.spec("000 §8.2")
@given(
    n=st.integers(-5, 5),
    bounds=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
    mode=st.sampled_from(["exclusive", "inclusive"]),
)
@FEW
def test_routes_by_value(n: int, bounds: tuple[int, int], mode: str) -> None:
    holds = [name for name, hold in (("low", n < bounds[0]), ("high", n > bounds[1]), ("rest", True)) if hold]
    steps = result(ROUTES % mode, n=n, bounds=list(bounds)).steps
    ran = [name for name in ("low", "high", "rest") if steps.get(name, {}).get("runs")]
    assert ran == (holds[:1] if mode == "exclusive" else holds)


PAGES = """
workload: {rows: [], size: 1}
workflow:
- step: start
  tool:
  - {name: init, kind: noop, set: {iter.page: 0, iter.got: []}}
  - name: fetch
    kind: noop
    args: {rows: "{{ workload.rows[iter.page * workload.size:(iter.page + 1) * workload.size] }}"}
    set: {iter.got: "{{ iter.got + [outcome.result.rows] }}"}
    spec:
      policy:
        rules:
        - when: "{{ (iter.page + 1) * workload.size < workload.rows | length }}"
          then: {do: jump, to: fetch, set_iter: {page: "{{ iter.page + 1 }}"}}
  - {name: all, kind: noop, args: {pages: "{{ iter.got }}"}}
"""


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("001 §9.2")
@given(rows=NUMBERS, size=st.integers(1, 4))
@FEW
def test_pages_by_jumps(rows: list[int], size: int) -> None:
    pages = [rows[start : start + size] for start in range(0, max(len(rows), 1), size)]
    assert result(PAGES, rows=rows, size=size).result == {"pages": pages}


KEYS = st.text(max_size=8) | st.sampled_from(["$noetl", "$$noetl", "key"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
CARRY = """
workload: {value: 0}
workflow:
- step: start
  tool: {kind: noop, args: {value: "{{ workload.value }}"}, set: {ctx.value: "{{ outcome.result.value }}"}}
  next: {arcs: [{step: end, args: {value: "{{ event.result.value }}"}}]}
- step: end
  tool: {kind: noop, args: {args: "{{ args.value }}", ctx: "{{ ctx.value }}", step: "{{ start.value }}"}}
"""


@pytest.mark.spec("000 §3.1")
@given(value=JSON)
@FEW
def test_any_value_passes_unchanged_through_results_ctx_and_args(value: Any) -> None:
    execution = result(CARRY, value=value)
    assert execution.result == {"args": value, "ctx": value, "step": value}
    assert execution.ctx == {"value": value}

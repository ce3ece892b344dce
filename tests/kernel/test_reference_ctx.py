"""Large values in `ctx`: what may be written, and how much fits."""

import pytest

from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import PatchCtx, Signal
from tests.kernel.driver import run
from tests.kernel.large_values import PAGE


def test_a_part_of_a_stored_value_can_be_written() -> None:
    text = """
- step: start
  tool: [{t: {kind: python, code: "1", set: {ctx.page: "{{ outcome.result }}"}}}]
  next: {arcs: [{step: b, set: {ctx.page.n: 4, ctx.page.more.deep: 5}}]}
- step: b
  tool: [{u: {kind: python, code: "1", args: {n: "{{ ctx.page.n }}", all: "{{ ctx.page }}"}}}]
""".lstrip()
    driver = run(text, {"t": PAGE})
    assert driver.calls[1].args["n"] == 4
    assert driver.calls[1].args["all"] == {**PAGE, "n": 4, "more": {"deep": 5}}
    assert driver.resolve(driver.ctx["page"]) == {**PAGE, "n": 4, "more": {"deep": 5}}


def test_ctx_is_bounded_and_the_error_names_the_key() -> None:
    writes = ", ".join(f"ctx.k{number}: \"{{{{ 'x' * 60000 }}}}\"" for number in range(20))
    driver = run(f"- step: start\n  tool: [{{t: {{kind: noop, set: {{{writes}}}}}}}]\n")
    error = driver.state.error
    assert error is not None
    assert error.kind == "limit"
    assert "`ctx.k17`" in error.message
    assert "1,048,576 bytes" in error.message


def test_large_values_count_for_what_stays_of_them() -> None:
    writes = ", ".join(f"ctx.k{number}: \"{{{{ 'x' * 90000 }}}}\"" for number in range(20))
    driver = run(f"- step: start\n  tool: [{{t: {{kind: noop, set: {{{writes}}}}}}}]\n")
    assert driver.status == "completed"
    assert driver.state.ctx.size < 60_000


def test_what_comes_from_outside_must_fit_into_ctx() -> None:
    from noetl.events.bodies import Patch

    driver = run("- step: start\n  tool: {kind: wait, signal: go}\n")
    for number in range(17):  # one at a time: in one event some of them would leave it
        driver.submit(PatchCtx((Patch(scope="ctx", path=(f"k{number}",), value="x" * 60_000),)))
    with pytest.raises(Refused, match=r"ctx\.signals\.other"):
        driver.submit(Signal("other", "x" * 60_000))
    with pytest.raises(Refused, match=r"ctx\.a\.b"):
        driver.submit(PatchCtx((Patch(scope="ctx", path=("a", "b"), value="x" * 60_000),)))
    refused = run(
        "- step: start\n  tool: {kind: noop}\n", ctx={f"k{number}": "x" * 60_000 for number in range(18)}
    )
    assert refused.state.error is not None
    assert refused.state.error.kind == "limit"

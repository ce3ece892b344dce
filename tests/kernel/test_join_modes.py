"""Where tokens meet."""

from noetl.events.bodies import StepScheduled, TokenDiscarded
from noetl.kernel.net.commands import Claim
from tests.kernel.driver import Driver, run


def fan(join: str, extra: str = "") -> str:
    return f"""
- step: start
  next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}, {{step: c}}]}}
- step: a
  tool: [{{ta: {{kind: python, code: "1"}}}}]
  next: {{arcs: [{{step: meet, args: {{a: 1, last: a}}}}]}}
- step: b
  tool: [{{tb: {{kind: python, code: "1"}}}}]
  next: {{arcs: [{{step: meet, args: {{b: 2, last: b}}}}]}}
- step: c
  tool: [{{tc: {{kind: python, code: "1"}}}}]
  next: {{arcs: [{{step: meet, args: {{c: 3, last: c}}, when: "{{{{ event.result != 'skip' }}}}"}}]}}
- step: meet
  spec: {{policy: {{join: {join}}}}}
  tool: [{{m: {{kind: noop, args: {{args: "{{{{ args }}}}", joined: "{{{{ joined }}}}"}}}}}}]
{extra}
""".lstrip().replace("\n\n", "\n")


def meets(driver: Driver) -> int:
    return driver.ran.count("m")


def test_without_a_join_each_token_is_a_run() -> None:
    text = fan("all").replace("  spec: {policy: {join: all}}\n", "").replace(', joined: "{{ joined }}"', "")
    assert meets(run(text)) == 3


def test_all_runs_once_with_what_every_token_brought() -> None:
    driver = run(fan("all"))
    assert meets(driver) == 1
    assert driver.state.result["args"] == {"a": 1, "b": 2, "c": 3, "last": "c"}
    assert driver.state.result["joined"] == [
        {"step": "a", "args": {"a": 1, "last": "a"}},
        {"step": "b", "args": {"b": 2, "last": "b"}},
        {"step": "c", "args": {"c": 3, "last": "c"}},
    ]


def test_all_does_not_wait_for_a_branch_that_ended_elsewhere() -> None:
    driver = run(fan("all"), {"tc": "skip"})
    assert meets(driver) == 1
    assert len(driver.state.result["joined"]) == 2


def test_all_waits_while_a_run_that_could_reach_it_is_open() -> None:
    driver = Driver(fan("all")).start()
    driver.step()
    driver.step()
    assert meets(driver) == 0
    assert driver.state.joins[4].arrivals != []
    driver.run()
    assert meets(driver) == 1


def test_any_runs_on_the_first_and_absorbs_the_rest() -> None:
    driver = run(fan("any"))
    assert meets(driver) == 1
    assert driver.state.result["joined"] == [{"step": "a", "args": {"a": 1, "last": "a"}}]
    assert [body.reason for body in driver.bodies(TokenDiscarded)] == ["absorbed", "absorbed"]
    assert driver.state.discarded == []


def test_any_arms_again_once_nothing_else_can_come() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: meet}]}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: meet}]}
- step: meet
  spec: {policy: {join: any}}
  tool: [{m: {kind: noop}}]
""".lstrip()
    driver = run(text)
    assert meets(driver) == 1
    assert driver.state.joins == {}


def test_count_runs_once_per_number_and_discards_the_remainder() -> None:
    driver = run(fan("{count: 2}"))
    assert meets(driver) == 1
    assert [body.reason for body in driver.bodies(TokenDiscarded)] == ["remainder"]
    assert [token["reason"] for token in driver.state.discarded] == ["remainder"]


def test_joins_that_wait_for_each_other_fire_by_lowest_arrival_one_at_a_time() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: j2}, {step: j1}]}
- step: j1
  spec: {policy: {join: all}}
  tool: [{one: {kind: noop}}]
  next: {arcs: [{step: j2, when: "{{ ctx.turned is not defined }}", set: {ctx.turned: true}}]}
- step: j2
  spec: {policy: {join: all}}
  tool: [{two: {kind: noop}}]
  next: {arcs: [{step: j1, when: "{{ ctx.turned is not defined }}", set: {ctx.turned: true}}]}
""".lstrip()
    driver = run(text)
    assert driver.state.status == "completed"
    assert driver.ran == ["two", "one"]
    assert [len(body.tokens) for body in driver.bodies(StepScheduled)] == [1, 1, 2]


def test_a_parked_token_counts_as_live_until_quiescence() -> None:
    gate = '  spec: {policy: {admit: {rules: [{when: "{{ ctx.never }}", then: {allow: true}}]}}}\n'
    text = fan("all").replace("- step: c\n", "- step: c\n" + gate)
    driver = run(text)
    assert meets(driver) == 1
    names = driver.names
    assert names.index("TokenDiscarded") > len(names) - 4
    assert driver.statuses["c"] == "not_admitted"


def test_a_join_waits_for_all_runs_even_when_they_are_claimed_in_any_order() -> None:
    driver = Driver(fan("all")).start()
    for name in reversed(list(driver.state.ready)):
        driver.submit(Claim(name))
    for run_state in list(driver.state.claimed_runs())[::-1]:
        driver.work(run_state)
    assert driver.run().state.result["args"]["last"] == "a"

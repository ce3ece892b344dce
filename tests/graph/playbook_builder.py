"""Playbooks built by hand, with only what a picture shows."""

from collections.abc import Mapping, Sequence

from noetl.dsl.document.playbook import (
    Admission,
    AdmitRule,
    Arc,
    Break,
    Directive,
    Executor,
    Fail,
    Guard,
    Join,
    Jump,
    Loop,
    Metadata,
    Playbook,
    Policy,
    Position,
    RetryTask,
    Router,
    Rule,
    Step,
    Task,
    Then,
)
from noetl.expr.expression import parse
from noetl.model.json import Json
from tests.templates import parse_template

POSITION = Position(1, 1)


def guard(text: str | bool) -> Guard:
    return text if isinstance(text, bool) else parse("{{ " + text + " }}")


def task(label: str, kind: str = "http", *directives: Directive) -> Task:
    rules = tuple(
        Rule(guard("outcome.status == 'error'"), Then(directive, POSITION), POSITION)
        for directive in directives
    )
    return Task(label, kind, POSITION, policy=Policy(rules, None, "continue", POSITION) if rules else None)


def arc(target: str, when: str | bool = True) -> Arc:
    return Arc(target, POSITION, guard(when))


def loop(items: Json, iterator: str, mode: str = "sequential", in_flight: int = 10) -> Loop:
    data = parse_template(items)
    if mode == "parallel":
        return Loop(data, iterator, POSITION, mode="parallel", max_in_flight=in_flight)
    return Loop(data, iterator, POSITION)


def admit(*conditions: str) -> Admission:
    return Admission(
        tuple(AdmitRule(guard(text), True, POSITION) for text in conditions), None, "park", POSITION
    )


def step(
    name: str,
    *tasks: Task,
    to: Sequence[Arc | str] = (),
    inclusive: bool = False,
    loop: Loop | None = None,
    admit: Admission | None = None,
    join: Join | None = None,
    desc: str = "",
) -> Step:
    arcs = tuple(arc(target) if isinstance(target, str) else target for target in to)
    router = Router(arcs, POSITION, "inclusive" if inclusive else "exclusive") if arcs else None
    return Step(name, POSITION, tasks, router, loop, admit, join, desc=desc)


def playbook(*steps: Step, name: str = "example", final: str | None = None) -> Playbook:
    by_name: Mapping[str, Step] = {s.name: s for s in steps}
    return Playbook(
        Metadata(name, f"examples/{name}"),
        steps,
        by_name,
        steps[0].name,
        {},
        "0" * 64,
        executor=Executor(final_step=final),
    )


def join_all() -> Join:
    return Join("all", POSITION)


def join_count(count: int) -> Join:
    return Join("count", POSITION, count)


def full_playbook() -> Playbook:
    """A playbook with one of each thing that a picture shows."""
    return playbook(
        step("start", to=[arc("fetch", "workload.enabled"), arc("end")], desc="Where it begins"),
        step(
            "fetch",
            task("fetch_page", "http", RetryTask(5), Fail()),
            task("paginate", "noop", Jump("fetch_page"), Break()),
            loop=loop("{{ workload.endpoints }}", "endpoint", "parallel", 7),
            to=[
                arc("left", "event.name == 'loop.done'"),
                arc("right"),
                arc("alert", "event.name == 'step.failed'"),
            ],
            inclusive=True,
        ),
        step("left", task("clean", "duckdb"), to=["merge"]),
        step("right", task("enrich", "python"), to=["merge", arc("right", "ctx.again")]),
        step(
            "merge",
            task("write", "postgres"),
            join=join_all(),
            admit=admit("ctx.errors == 0"),
            to=[arc("fetch", "ctx.has_more"), arc("end")],
        ),
        step("alert", task("page", "http"), to=["end"], join=join_count(1)),
        step("end"),
        step("cleanup", task("drop", "shell")),
        name="everything",
        final="cleanup",
    )

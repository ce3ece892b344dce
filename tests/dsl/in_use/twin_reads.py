"""What expressions read, in two spellings: canonical, and as the language is in use."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.dsl.in_use.twin_tasks import Twin

SQL = ("postgres", "duckdb", "ducklake")
_ABSENT = "`S` or `S.x` in an input, S may not have run; a name nothing sets"
_PLACE = "iterator, `loop_index`, `_index`, `_total` in python code or read bare"
_LOOP = "`{{ S }}`, `S.results`, `S.data`, `S.stats.total`, S a loop step"
_REFERENCE = "`S._ref`, `S._store`, `S._preview`"
_TASK = "`S.results.T.x`, `S.T.x`"
_NAMES = "step names with `/`, `.` or spaces"
_LATER = "inputs of a later task: `output.data`"
_BODY = "`output.data.data`, `output.data.body` (http)"
_HTTP = "http rules: `output.data.K`"
_RULES = "rules: `output`, `output.data`, `output.response`"
_ROUTES = "step `set` and arcs: `output.data.x`, `output.x`, `S.x`"


@dataclass(eq=False)
class TwinStep:
    """A step that is being written, and what the steps behind it make of it."""

    source: str
    name: str
    labels: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    iterator: str = ""
    before: list["TwinStep"] = field(default_factory=list)
    """Those whose arcs lead to it."""
    kept: set[str] = field(default_factory=set)
    """Labels of tasks, not the last, that later steps read."""
    kept_for_run: set[str] = field(default_factory=set)
    """Those that its own arcs read."""
    keeps_reference: bool = False
    wants_result: bool = False
    """Whether the arcs to it bring the result of the step before."""

    @property
    def is_loop(self) -> bool:
        return self.iterator != ""

    @property
    def is_word(self) -> bool:
        """Whether its name can be read bare; others stand under `steps` as in a canonical document."""
        return self.source == self.name

    @property
    def last_kind(self) -> str:
        """Of the task whose result is the step's."""
        return self.kinds[-1] if self.kinds and not self.is_loop else ""


def _nothing() -> None:
    pass


class Read(NamedTuple):
    """A path in both spellings, without braces. `when_drawn` notes what the canonical document then needs."""

    in_use: str
    canonical: str
    row: str = ""
    is_absent: bool = False
    """Whether it may be absent, and null is meant then."""
    when_drawn: Callable[[], None] = _nothing

    @property
    def rows(self) -> tuple[str, ...]:
        return (self.row,) if self.row else ()

    def draw(self, random: Random) -> Twin:
        """The read alone, in an expression, or in a text."""
        self.when_drawn()
        value = f"{self.canonical} | default(none)" if self.is_absent else self.canonical
        operand = f"({value})" if " | " in value and not value.startswith("(") else value
        return random.choice(
            [
                Twin(f"{{{{ {self.in_use} }}}}", f"{{{{ {value} }}}}", self.rows),
                Twin(f"{{{{ 1 + {self.in_use} }}}}", f"{{{{ 1 + {operand} }}}}", self.rows),
                Twin(f"{{{{ [{self.in_use}, w] }}}}", f"{{{{ [{operand}, w] }}}}", self.rows),
                Twin(f"a {{{{ {self.in_use} }}}} b", f"a {{{{ {value} }}}} b", self.rows),
            ]
        )


def input_reads(step: TwinStep, sure: list[TwinStep], unsure: list[TwinStep]) -> list[Read]:
    """What an input of the next task of a step may read."""
    reads = [*_anywhere(), *_of_task_before(step), *(_result_of_step_before(step))]
    for other in sure:
        if other.is_word:
            reads += _of_loop(other) if other.is_loop else _of_step(other)
    for other in (*sure, *unsure):
        if not other.is_word:
            reads.append(Read(f"{_under(other.source)}.x", f"steps.{other.name}.result.x", _NAMES))
    reads += [
        Read(f"{other.name}.x", f"{other.name}.x", _ABSENT, is_absent=True)
        for other in unsure
        if other.is_word and not other.is_loop
    ]
    if step.is_loop:
        positions = {"loop_index": "index", "_index": "index", "_total": "count"}
        reads += [Read(name, f"iter.{key}", _PLACE) for name, key in positions.items()]
        row = "iterator named `run`" if step.iterator == "run" else _PLACE
        reads.append(Read(f"{step.iterator}.id", f"{step.iterator}.id", row))
    return reads


def _anywhere() -> Iterator[Read]:
    yield Read("(w + 2)", "(w + 2)")
    yield Read("ctx.w", "workload.w", "`ctx.x`, x never set but in `workload`, or a step")
    for name in ("uuid", "id", "execution_id"):
        yield Read(f"job.{name}", "execution_id", "`job.uuid`, `job.id`, `job.execution_id`")
    yield Read("nobody", "nobody", _ABSENT, is_absent=True)
    yield Read("nobody.x", "nobody.x", _ABSENT, is_absent=True)
    yield Read("ctx.nobody", "ctx.nobody", _ABSENT, is_absent=True)
    yield Read("(nobody.x | default(2))", "(nobody.x | default(2))", _ABSENT)


def _of_task_before(step: TwinStep) -> Iterator[Read]:
    if not step.kinds:
        return
    kind, body = step.kinds[-1], "data." if step.kinds[-1] == "http" else ""
    yield Read("output.data.x", f"_prev.{body}x", _LATER)
    yield Read("output['response'].x", f"_prev.{body}x", _LATER)
    yield Read("output.data", "_prev", _LATER)
    if kind == "http":
        yield Read("output.data.status_code", "_prev.status", _HTTP)
        yield Read("output.data.body.x", "_prev.data.x", _BODY)
        yield Read("output.data.data.x", "_prev.data.x", _BODY)
    if step.is_word and not step.is_loop:
        label = step.labels[-1]
        yield Read(f"{step.name}.{label}.x", f"{label}.x", _TASK)


def _result_of_step_before(step: TwinStep) -> Iterator[Read]:
    row = "bare `result` in inputs"
    if len(step.before) == 1:
        yield Read("result.x", f"steps.{step.before[0].name}.result.x", row)
    elif step.before:
        yield Read("result.x", "args.result.x", row, when_drawn=lambda: setattr(step, "wants_result", True))


def _of_step(step: TwinStep) -> Iterator[Read]:
    """What is read of a step that has surely run, and is no loop."""
    name = step.name
    yield Read(f"{name}.x", f"{name}.x")
    yield Read(f"{name}.data.x", f"{name}.data.x", "`S.data.x`")
    yield Read(f"ctx.{name}.x", f"{name}.x", "`ctx.x`, x never set but in `workload`, or a step")
    for label in step.labels:
        for in_use in (f"{name}.{label}.x", f"{name}.results.{label}.x"):
            if label == step.labels[-1]:
                yield Read(in_use, f"{name}.x", _TASK)
            else:
                keep = _adder(step.kept, label)
                yield Read(in_use, f"ctx.task_results.{name}.{label}.x", _TASK, when_drawn=keep)
    for in_use, part in {"_ref": "", "_store": ".store", "_preview": ".preview"}.items():
        canonical = f"ctx.result_refs.{name}{part}"
        keep = _reference_keeper(step)
        yield Read(f"{name}.{in_use}", canonical, _REFERENCE, is_absent=True, when_drawn=keep)


def _of_loop(step: TwinStep) -> Iterator[Read]:
    name = step.name
    yield Read(f"{name}.results", name, _LOOP)
    yield Read(f"{name}.data", name, _LOOP)
    yield Read(f"{name}.stats.total", f"{name} | length", _LOOP)
    yield Read(f"{name}.stats.failed", f"{name} | select('none') | list | length", _LOOP)
    yield Read(f"{name}.stats.success", f"{name} | reject('none') | list | length", _LOOP)


def _under(name: str) -> str:
    return f"steps['{name}'].result"


def _reference_keeper(step: TwinStep) -> Callable[[], None]:
    def keep() -> None:
        step.keeps_reference = True

    return keep


def rule_reads(step: TwinStep, *, is_last: bool) -> list[Read]:
    """What a rule of the task that was added last may read."""
    kind, body = step.kinds[-1], "data." if step.kinds[-1] == "http" else ""
    reads = [
        Read("output.data.x", f"outcome.result.{body}x", _HTTP if body else _RULES),
        Read("output.response.x", f"outcome.result.{body}x", _RULES),
        Read("output['data'].x", f"outcome.result.{body}x", _RULES),
        Read("output.error.status", "outcome.http.status", "`output.error.status`"),
    ]
    if kind == "http":
        reads += [
            Read("output.data.status_code", "outcome.result.status", _HTTP),
            Read("output.data.headers.x", "outcome.result.headers.x", _HTTP),
            Read("output.data.data.x", "outcome.result.data.x", _BODY),
            Read("output.data.body.x", "outcome.result.data.x", _BODY),
        ]
    if is_last and step.is_word and not step.is_loop:
        row = "rules, last task: own step name `S.x`"
        reads.append(Read(f"{step.name}.x", "outcome.result.x", row))
    return reads


def routing_reads(step: TwinStep) -> list[Read]:
    """What arcs of a step and its `set` may read of it."""
    name, body = step.name, "data." if step.last_kind == "http" else ""
    reads = [Read("output.data.x", f"event.result.{body}x", _ROUTES)]
    if step.is_loop:
        reads.append(Read("output.results", "event.result", _LOOP))
        if step.is_word:
            reads.append(Read(f"{name}.results", "event.result", _LOOP))
            reads.append(Read(f"{name}.stats.total", "event.loop.total", _LOOP))
            reads.append(Read(f"{name}.stats.success", "event.loop.succeeded", _LOOP))
        return reads
    reads.append(Read("output.x", "event.result.x", _ROUTES))
    if not step.is_word:
        return reads
    data = "event.result.data" if body else "(event.result.data | default(event.result))"
    reads += [
        Read(f"{name}.x", "event.result.x", _ROUTES),
        Read(f"{name}.data.x", f"{data}.x", "`S.data.x`"),
        Read(f"{name}.{step.labels[-1]}.x", "event.result.x", _TASK),
    ]
    for label in step.labels[:-1]:
        keep = _adder(step.kept_for_run, label)
        reads.append(Read(f"{name}.results.{label}.x", f"run.{label}.x", _TASK, when_drawn=keep))
    return reads


def _adder(labels: set[str], label: str) -> Callable[[], None]:
    return lambda: labels.add(label)

"""The playbook as the engine knows it: frozen, typed, every expression parsed.

Names come from the specification. Nothing here can be wrong in shape: what the document got wrong
was reported by the reader and never became one of these.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from noetl.dsl.document.kinds import READABLE
from noetl.dsl.document.problem import Problem
from noetl.expr.expression import Expression
from noetl.expr.template import Template, template_uses
from noetl.model.json import Json


class Position(Struct, frozen=True):
    """Where something stands in its file; line and column count from 1."""

    line: int
    column: int


Guard: TypeAlias = bool | Expression
"""A condition: `true`, `false`, or one expression whose truth is asked."""


class Write(Struct, frozen=True):
    """One assignment `scope.path = value`; the path has at least one key."""

    scope: Literal["ctx", "iter", "run", "args"]
    path: tuple[str, ...]
    value: Template
    position: Position


class Continue(Struct, frozen=True, tag="continue"):
    """Go on with the next task."""


class RetryTask(Struct, frozen=True, tag="retry"):
    """Run the task again, `attempts` tries in all; what waits between them."""

    attempts: int | Expression = 3
    backoff: Literal["none", "linear", "exponential"] = "none"
    delay: float | Expression = 0.0
    max_delay: float | None = None
    jitter: float | None = None


class Jump(Struct, frozen=True, tag="jump"):
    """Go on with the task labelled `to` of the same pipeline."""

    to: str


class Break(Struct, frozen=True, tag="break"):
    """End the pipeline successfully."""


class Fail(Struct, frozen=True, tag="fail"):
    """End the pipeline with a failure."""

    message: Template | None = None


Directive: TypeAlias = Continue | RetryTask | Jump | Break | Fail


class Then(Struct, frozen=True):
    """What a matching rule does: first its writes, then its directive."""

    do: Directive
    position: Position
    writes: tuple[Write, ...] = ()
    set_prev: Template | None = None


class Rule(Struct, frozen=True):
    when: Guard
    then: Then
    position: Position


class Policy(Struct, frozen=True):
    """Ordered rules from outcome to directive (000 §6). `otherwise` is the `else`."""

    rules: tuple[Rule, ...]
    otherwise: Then | None
    on_unmatched: Literal["continue", "fail"]
    position: Position


class Task(Struct, frozen=True):
    """A labelled tool invocation. `spec` is the merged one (001 §6.4), without `policy`."""

    label: str
    kind: str
    position: Position
    inputs: Mapping[str, Template] = {}
    args: Mapping[str, Template] | None = None
    """Laid over the token's args; None is not the same as none of them: `noop` passes `_prev` on."""
    policy: Policy | None = None
    spec: Mapping[str, Template] = {}
    writes: tuple[Write, ...] = ()
    desc: str = ""
    references: frozenset[str] = frozenset()
    """Inputs in which its kind takes references."""
    reads: frozenset[str] = READABLE
    """Which of these its kind looks at."""

    @property
    def thens(self) -> tuple[Then, ...]:
        """What the rules of its policy do, in order, the `else` last."""
        if self.policy is None:
            return ()
        thens = tuple(rule.then for rule in self.policy.rules)
        return thens if self.policy.otherwise is None else (*thens, self.policy.otherwise)


class AdmitRule(Struct, frozen=True):
    when: Guard
    allow: bool
    position: Position


class Admission(Struct, frozen=True):
    """The gate in front of a step (000 §4.2). `otherwise` is the `else`; without one, deny."""

    rules: tuple[AdmitRule, ...]
    otherwise: bool | None
    on_deny: Literal["park", "wait", "drop", "fail"]
    position: Position
    timeout: float | Expression | None = None

    @property
    def admits_all(self) -> bool:
        """Whether no token is ever denied."""
        return bool(self.otherwise) and all(rule.allow for rule in self.rules)

    @property
    def signals(self) -> tuple[str, ...] | None:
        """The signals that its rules read, in order, but for computed ones; None if they read none."""
        guards = [rule.when for rule in self.rules if isinstance(rule.when, Expression)]
        paths = [use.path for guard in guards for use in guard.uses if use.path[:2] == ("ctx", "signals")]
        return tuple(dict.fromkeys(path[2] for path in paths if len(path) > 2)) if paths else None

    @property
    def may_fail(self) -> bool:
        """Whether a token that is denied fails the step, at once or in time."""
        return self.on_deny == "fail" or self.timeout is not None


class Join(Struct, frozen=True):
    """How tokens that arrive at one step become one run. `count` is set for mode `count` alone."""

    mode: Literal["all", "any", "count"]
    position: Position
    count: int | None = None


Reducer: TypeAlias = Literal[
    "sum", "count", "min", "max", "append", "concat", "merge", "union", "first", "last"
]


class Loop(Struct, frozen=True):
    """The collection a step's pipeline runs over, and how. Reducer keys are `ctx.k` or `run.k`."""

    items: Template
    iterator: str
    position: Position
    mode: Literal["sequential", "parallel"] = "sequential"
    max_in_flight: int | Expression = 10
    window: int = 1000
    placement: Literal["local", "distributed"] = "local"
    failure: Literal["fail_fast", "best_effort"] = "fail_fast"
    reduce: Mapping[str, Reducer] = {}
    desc: str = ""


class Arc(Struct, frozen=True):
    step: str
    position: Position
    when: Guard = True
    args: Mapping[str, Template] = {}
    writes: tuple[Write, ...] = ()
    spec: Mapping[str, Json] = {}
    desc: str = ""

    @property
    def is_guarded(self) -> bool:
        return self.when is not True

    @property
    def handles_failure(self) -> bool:
        """Whether its guard looks at how the step ended: it then handles a failure (semantics §6)."""
        return isinstance(self.when, Expression) and any(
            use.path == ("event",) or (use.path[0] == "event" and use.path[1] in ("name", "status", "error"))
            for use in self.when.uses
        )


class Router(Struct, frozen=True):
    arcs: tuple[Arc, ...]
    position: Position
    mode: Literal["exclusive", "inclusive"] = "exclusive"


class Step(Struct, frozen=True):
    """A transition: admission, an ordered pipeline, a router (000 §2.2)."""

    name: str
    position: Position
    tasks: tuple[Task, ...] = ()
    router: Router | None = None
    loop: Loop | None = None
    admit: Admission | None = None
    join: Join | None = None
    args: Mapping[str, Template] = {}
    """Defaults under the token's own args."""
    writes: tuple[Write, ...] = ()
    """Applied at the step's terminal event."""
    spec: Mapping[str, Json] = {}
    timeout: float | Expression | None = None
    desc: str = ""

    @property
    def arcs(self) -> tuple[Arc, ...]:
        return self.router.arcs if self.router else ()

    @property
    def is_exclusive(self) -> bool:
        return self.router is None or self.router.mode == "exclusive"

    @property
    def done_event(self) -> Literal["step.done", "loop.done"]:
        """The name of the event that ends a successful run of this step."""
        return "loop.done" if self.loop else "step.done"


class Metadata(Struct, frozen=True):
    name: str
    path: str
    version: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class KeychainEntry(Struct, frozen=True):
    """A credential the playbook declares; `fields` belong to its kind, and so do those that are computed."""

    name: str
    kind: str
    position: Position
    fields: Mapping[str, Json] = {}
    templates: Mapping[str, Template] = {}
    """The fields that hold expressions, over `workload` and the entries before this one."""


def entry_reads(entry: KeychainEntry) -> list[str]:
    """The other entries that an entry reads, as its expressions name them."""
    uses = [use.path for template in entry.templates.values() for use in template_uses(template)]
    return list(dict.fromkeys(path[1] for path in uses if path[0] == "keychain" and len(path) > 1))


class Executor(Struct, frozen=True):
    kind: Literal["local", "distributed", "hybrid"] | None = None
    """None: the playbook runs where it is started."""
    spec: Mapping[str, Json] = {}
    output: Template | None = None
    final_step: str | None = None
    timeout: float | Expression | None = None
    max_step_runs: int = 1_000_000
    max_failures_in_row: int = 100
    max_depth: int = 32
    no_next_is_error: bool = False


class Playbook(Struct, frozen=True):
    metadata: Metadata
    workflow: tuple[Step, ...]
    steps: Mapping[str, Step]
    """The workflow by name."""
    entry: str
    document: Json
    """The canonical document, as plain values."""
    hash: str
    """SHA-256 of the canonical document."""
    keychain: Mapping[str, KeychainEntry] = {}
    executor: Executor = Executor()
    workload: Mapping[str, Template] = {}
    warnings: tuple[Problem, ...] = ()
    """What may be wrong with it, in document order."""

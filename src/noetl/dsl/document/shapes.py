"""The shape of a canonical document, key by key: what the reader checks and the JSON Schema says."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from noetl.dsl.document.playbook import Reducer
from noetl.dsl.document.shape_check import RefusedKey

DRAFT_HINT = "; or run `noetl upgrade --dialect draft`, or pass `--dialect draft`"
"""How a hint ends about what only drafts have."""
_V1 = "for version 1 of the language, set `apiVersion: noetl.io/v1`"

NAME = r"^[A-Za-z_][A-Za-z0-9_-]*$"

Name: TypeAlias = Annotated[str, Meta(pattern=NAME, extra={"name": True})]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Template: TypeAlias = Annotated[str, Meta(extra={"expression": True})]
Condition: TypeAlias = Annotated[
    bool | str, Meta(description="`true`, `false` or one `{{ expression }}`.", extra={"guard": True})
]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)] | Template
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Values: TypeAlias = dict[str, Any]
Form: TypeAlias = Any

Description: TypeAlias = Annotated[str | None, Meta(description="What it is for, in words.")]
Arguments: TypeAlias = Annotated[
    Values | None, Meta(description="Named values; strings may hold expressions.")
]
Assignments: TypeAlias = Annotated[
    Values | None, Meta(description="Writes by dotted path, for example `ctx.total` or `iter.page`.")
]
Selected: TypeAlias = Annotated[
    list[Any] | None, Meta(description="Another spelling of `spec.result.select`.")
]


class ClosedShape(Struct, kw_only=True, forbid_unknown_fields=True):
    """A mapping that has these keys and no others."""


class OpenShape(Struct, kw_only=True):
    """A mapping that may have other keys, too."""


class MetadataShape(OpenShape):
    """What the playbook is called and what it is for."""

    name: Annotated[Text, Meta(description="A short name.")]
    path: Annotated[Text, Meta(description="Where the catalog keeps it, for example `workflows/report`.")]
    version: Annotated[str | int | float | None, Meta(description="A label; quote it.")] = None
    description: Annotated[str | None, Meta(description="One sentence about it.")] = None
    tags: Annotated[list[str] | None, Meta(description="Words to find it by.")] = None
    labels: Annotated[Values | None, Meta(description="Key and value pairs to filter by.")] = None
    dialect: Annotated[
        Literal["canonical", "draft", "in_use"] | None,
        Meta(description="The dialect the file is written in. Default: what its spellings tell."),
    ] = None


class KeychainShape(OpenShape):
    """A credential that the playbook uses by name."""

    name: Annotated[Name, Meta(description="The name used in `auth:` and `keychain.NAME`.")]
    kind: Annotated[
        Text, Meta(description="Where it comes from, for example `env`, `file`, `postgres_credential`.")
    ]
    desc: Description = None


class RequestTimeoutShape(ClosedShape):
    """Limits of the `http` tasks in a scope, unless they have their own."""

    connect: Annotated[Seconds | None, Meta(description="Seconds to connect.")] = None
    read: Annotated[Seconds | None, Meta(description="Seconds without any data.")] = None


class ExecutorSpecShape(OpenShape):
    """Knobs of the whole execution; other keys are inherited by tasks."""

    entry_step: Annotated[
        str | None, Meta(description="Where execution starts. Default `start`, else the first step.")
    ] = None
    final_step: Annotated[str | None, Meta(description="A step that runs once when all else is done.")] = None
    output: Annotated[Any, Meta(description="Expression that gives the execution's result.")] = None
    pool: Annotated[str | None, Meta(description="The worker pool.")] = None
    timeout: Annotated[
        Seconds | RequestTimeoutShape | None,
        Meta(description="Seconds the whole execution may take, or `{connect, read}` of its `http` tasks."),
    ] = None
    max_step_runs: Annotated[
        Positive | None, Meta(description="Bound on endless graphs. Default 1000000.")
    ] = None
    max_failures_in_row: Annotated[
        Positive | None,
        Meta(description="Unhandled failures of one step after another that end the execution. Default 100."),
    ] = None
    max_depth: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="How deep executions may start one another. Default 32."),
    ] = None
    no_next_is_error: Annotated[
        bool | None, Meta(description="Whether a step with arcs that all stay closed has failed.")
    ] = None
    policy: Annotated[Any, Meta(description="Policy that tasks inherit.", extra={"form": "policy"})] = None


class ExecutorShape(ClosedShape):
    """Where and how the playbook runs."""

    kind: Annotated[
        Literal["distributed", "local", "hybrid"] | None, Meta(description="Where steps run.")
    ] = None
    spec: Annotated[ExecutorSpecShape | None, Meta(description="Knobs.")] = None
    profile: Annotated[Any, Meta(description="Accepted and ignored.")] = None


class FailureShape(ClosedShape):
    """What a failed iteration means for its loop."""

    mode: Annotated[
        Literal["fail_fast", "best_effort"], Meta(description="Stop at the first failure, or run all.")
    ]


class CountShape(ClosedShape):
    """A join over a fixed number of tokens."""

    count: Annotated[int, Meta(ge=1, description="How many tokens make one run.")]


class AllowShape(ClosedShape):
    """The verdict of an admission rule."""

    allow: Annotated[bool, Meta(description="Whether the token may enter.")]


class AdmitShape(ClosedShape):
    """The gate in front of a step: the first rule that matches decides."""

    rules: Annotated[list[Form], Meta(description="Rules in order.", extra={"form": "admit"})]
    on_deny: Annotated[
        Literal["park", "wait", "drop", "fail"] | None,
        Meta(description="What becomes of a token that is denied."),
    ] = None
    timeout: Annotated[Seconds | None, Meta(description="Seconds a `wait` may last.")] = None


class PolicyShape(ClosedShape):
    """Maps a task's outcome to what happens next: the first rule that matches decides."""

    rules: Annotated[list[Form], Meta(description="Rules in order.", extra={"form": "rule"})]
    on_unmatched: Annotated[
        Literal["continue", "fail"] | None, Meta(description="What an error does that no rule matches.")
    ] = None


class InheritedPolicyShape(ClosedShape):
    """A policy above the task: its rules are inherited by tasks that have none."""

    rules: Annotated[
        list[Form] | None, Meta(description="Rules that tasks inherit.", extra={"form": "rule"})
    ] = None
    on_unmatched: Annotated[Literal["continue", "fail"] | None, Meta(description="Inherited by tasks.")] = (
        None
    )


class StepPolicyShape(InheritedPolicyShape):
    """How a step admits, joins and fails."""

    admit: Annotated[AdmitShape | None, Meta(description="The gate in front of the step.")] = None
    join: Annotated[
        Literal["all", "any"] | CountShape | None, Meta(description="How several tokens become one run.")
    ] = None
    failure: Annotated[FailureShape | None, Meta(description="What a failed iteration means.")] = None


class LoopPolicyShape(InheritedPolicyShape):
    """Where iterations run and what their failure means."""

    exec: Annotated[Literal["distributed", "local"] | None, Meta(description="One worker, or many.")] = None
    failure: Annotated[FailureShape | None, Meta(description="What a failed iteration means.")] = None


class LeaseShape(ClosedShape):
    """How a worker owns a run of this step."""

    mode: Annotated[Literal["single_owner"] | None, Meta(description="One worker at a time.")] = None
    ttl: Annotated[NotNegative | None, Meta(description="Seconds a lease lives without a heartbeat.")] = None
    heartbeat: Annotated[NotNegative | None, Meta(description="Seconds between heartbeats.")] = None


class StepSpecShape(ClosedShape):
    """Knobs of a step; keys of task specs may stand here too and are inherited."""

    timeout: Annotated[
        Seconds | RequestTimeoutShape | None,
        Meta(description="Seconds one run of the step may take, or `{connect, read}` of its `http` tasks."),
    ] = None
    lease: Annotated[LeaseShape | None, Meta(description="How a worker owns a run.")] = None
    policy: Annotated[StepPolicyShape | None, Meta(description="Admission, join and failure.")] = None


class LoopSpecShape(ClosedShape):
    """Knobs of a loop; keys of task specs may stand here too and are inherited."""

    mode: Annotated[Literal["sequential", "parallel"] | None, Meta(description="Default `sequential`.")] = (
        None
    )
    max_in_flight: Annotated[
        Positive | Template | None, Meta(description="Most iterations at once. Default 10.")
    ] = None
    window: Annotated[
        Positive | None, Meta(description="How far ahead of the lowest open iteration. Default 1000.")
    ] = None
    timeout: Annotated[
        RequestTimeoutShape | None, Meta(description="`{connect, read}` of the loop's `http` tasks.")
    ] = None
    reduce: Annotated[
        dict[str, Reducer] | None,
        Meta(description="How the writes of parallel iterations become one value."),
    ] = None
    policy: Annotated[LoopPolicyShape | None, Meta(description="Placement and failure.")] = None


class LoopShape(ClosedShape):
    """Runs the step's pipeline once for each element of a collection."""

    in_: Annotated[
        Any,
        Meta(
            description="The collection: an expression, a list or a mapping.",
            extra={"missing": "loop-incomplete"},
        ),
    ] = field(name="in")
    iterator: Annotated[
        Name,
        Meta(
            description="The element's name: `iter.NAME`.",
            extra={"missing": "loop-incomplete", "iterator": True},
        ),
    ]
    spec: Annotated[Values | None, Meta(description="Knobs.", extra={"form": "loop-spec"})] = None
    desc: Description = None


class RouterSpecShape(ClosedShape):
    """How arcs are chosen."""

    mode: Annotated[
        Literal["exclusive", "inclusive"] | None,
        Meta(description="First matching arc (default), or all of them."),
    ] = None


class ArcShape(ClosedShape):
    """An arc to the next step; its guard sees the `event` that ended this one."""

    step: Annotated[Text, Meta(description="The step it leads to.")]
    when: Annotated[Condition | None, Meta(description="Its guard. Default true, for failures too.")] = None
    args: Arguments = None
    set: Assignments = None
    spec: Annotated[Values | None, Meta(description="Reserved.")] = None
    desc: Description = None


class RouterShape(ClosedShape):
    """Where tokens go from here."""

    arcs: Annotated[list[ArcShape], Meta(description="Arcs in order.")]
    spec: Annotated[RouterSpecShape | None, Meta(description="Knobs.")] = None


class StepShape(ClosedShape):
    """A transition: an admission gate, an ordered pipeline of tasks, a router."""

    step: Annotated[Name, Meta(description="Its name, unique in the workflow.")]
    desc: Description = None
    args: Arguments = None
    input: Arguments = None
    spec: Annotated[Values | None, Meta(description="Knobs.", extra={"form": "step-spec"})] = None
    loop: Annotated[
        LoopShape | None,
        Meta(description="Runs the pipeline for each element.", extra={"empty": "loop-incomplete"}),
    ] = None
    tool: Annotated[Form, Meta(description="The pipeline: tasks in order.", extra={"form": "tasks"})] = None
    next: Annotated[Form, Meta(description="Where tokens go from here.", extra={"form": "router"})] = None
    set: Assignments = None
    output_select: Selected = None


class TaskShape(OpenShape):
    """What every task may have beside the inputs of its kind."""

    kind: Annotated[Text, Meta(description="The tool.")]
    name: Annotated[
        Name | None, Meta(description="Its label in the pipeline. Default `task_0`, `task_1`, …")
    ] = None
    desc: Description = None
    args: Arguments = None
    input: Arguments = None
    set: Assignments = None
    output_select: Selected = None
    spec: Annotated[Values | None, Meta(description="Knobs and policy.")] = None


class ThenShape(ClosedShape):
    """What a matching rule does."""

    do: Annotated[Literal["continue", "retry", "jump", "break", "fail"], Meta(description="The directive.")]
    attempts: Annotated[Positive | Template | None, Meta(description="retry: tries in all. Default 3.")] = (
        None
    )
    backoff: Annotated[
        Literal["none", "fixed", "linear", "exponential"] | None,
        Meta(description="retry: how the wait grows."),
    ] = None
    delay: Annotated[Seconds | None, Meta(description="retry: seconds to wait first.")] = None
    max_delay: Annotated[NotNegative | None, Meta(description="retry: longest wait in seconds.")] = None
    jitter: Annotated[NotNegative | None, Meta(description="retry: random part of the wait in seconds.")] = (
        None
    )
    to: Annotated[str | None, Meta(description="jump: the task to go on with, or `previous`.")] = None
    message: Annotated[str | None, Meta(description="fail: the error's message.")] = None
    set_iter: Arguments = None
    set_ctx: Arguments = None
    set_run: Arguments = None
    set_prev: Annotated[Any, Meta(description="What the next task sees as `_prev`.")] = None
    set: Assignments = None


class RootShape(ClosedShape):
    """A NoETL playbook."""

    apiVersion: Annotated[  # noqa: N815 - the document spells it so
        Literal["noetl.io/v2"],
        Meta(description="The version of the language.", extra={"wrong": "api-version"}),
    ]
    kind: Annotated[
        Literal["Playbook"], Meta(description="Always `Playbook`.", extra={"wrong": "not-a-playbook"})
    ]
    metadata: Annotated[
        MetadataShape, Meta(description="Its `name` and `path`, and what else to know of it.")
    ]
    workflow: Annotated[list[StepShape], Meta(min_length=1, description="The steps.")]
    keychain: Annotated[list[KeychainShape] | None, Meta(description="Credentials that it uses.")] = None
    executor: ExecutorShape | None = None
    workload: Annotated[Values | None, Meta(description="Default input; a request may override it.")] = None
    workbook: Annotated[
        Any, Meta(description="Named tasks that steps may use.", extra={"form": "workbook"})
    ] = None


REFUSED_NEXT = RefusedKey(
    "draft-next-list", "`next` is a mapping with `arcs`", f"write `next: {{ arcs: […] }}`{DRAFT_HINT}"
)

REFUSED_KEYS: dict[str, dict[str, RefusedKey]] = {
    "RootShape": {
        "vars": RefusedKey("root-vars", "a playbook has no root `vars`", "put defaults under `workload`"),
        "name": RefusedKey(
            "unknown-key", "a playbook has no key `name`", f"put it under `metadata`; or {_V1}"
        ),
        "path": RefusedKey(
            "unknown-key", "a playbook has no key `path`", f"put it under `metadata`; or {_V1}"
        ),
    },
    "StepShape": {
        "when": RefusedKey("step-when", "a step has no `when`", f"use `spec.policy.admit`{DRAFT_HINT}"),
        "case": RefusedKey("draft-case", "a step has no `case`", "use `next.arcs` and task policies"),
        "pipe": RefusedKey("draft-pipe", "a step has no `pipe`", "`tool` is an ordered pipeline"),
        "vars": RefusedKey("draft-vars", "a step has no `vars`", f"use `set_run` in a rule{DRAFT_HINT}"),
        "run": RefusedKey("unknown-key", "a step has no key `run`", f"use `tool`; or {_V1}"),
        "with": RefusedKey("unknown-key", "a step has no key `with`", f"use `args`; or {_V1}"),
    },
    "StepSpecShape": {
        "next_mode": RefusedKey(
            "draft-next-mode", "a step's spec has no `next_mode`", f"use `next.spec.mode`{DRAFT_HINT}"
        ),
    },
    "TaskShape": {
        "eval": RefusedKey("draft-eval", "a task has no `eval`", f"use `spec.policy.rules`{DRAFT_HINT}"),
        "expr": RefusedKey("draft-expr", "a task has no `expr`", f"use `spec.policy.rules`{DRAFT_HINT}"),
        "case": RefusedKey("draft-case", "a task has no `case`", "use `spec.policy.rules`"),
        "pipe": RefusedKey("draft-pipe", "a task has no `pipe`", "`tool` is an ordered pipeline"),
        "vars": RefusedKey(
            "draft-vars", "a task has no `vars`", f"use `args`, or `set_run` in a rule{DRAFT_HINT}"
        ),
    },
    "Rule": {
        "expr": RefusedKey("draft-expr", "a rule has no `expr`", f"use `when`{DRAFT_HINT}"),
        "do": RefusedKey("draft-eval", "a rule's directive stands under `then`", "write `then: { do: … }`"),
    },
    "ThenShape": {
        "set_vars": RefusedKey("draft-vars", "there is no `set_vars`", f"use `set_run`{DRAFT_HINT}"),
        "set_shared": RefusedKey(
            "draft-shared", "there is no `set_shared`", f"use `set_run` and `loop.spec.reduce`{DRAFT_HINT}"
        ),
        "expr": RefusedKey("draft-expr", "there is no `expr` here", f"use `when` in the rule{DRAFT_HINT}"),
    },
}

SHAPE_NAMES: dict[str, str] = {
    "StepShape": "a step",
    "ArcShape": "an arc",
    "KeychainShape": "a keychain entry",
    "LoopShape": "a loop",
    "AdmitShape": "an admission gate",
}
"""What messages call the mappings that have a name of their own."""

"""What goes into tools: names of credentials, SQL text, secrets that would be kept."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct, inspect

from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole
from noetl.dsl.document.playbook import Playbook, Step, Task
from noetl.dsl.document.shape_check import did_you_mean, fields_of
from noetl.expr.expression import Expression
from noetl.expr.language.lexer import tokenize
from noetl.expr.use import Use

_NUMBER = re.compile(r"\|\s*(int|float|length|count)(\(\s*\d*\s*\))?\s*$")
"""What ends in one of these is a number and cannot change a statement."""

_HARMLESS = frozenset(
    {("execution_id",), ("iter", "index"), ("iter", "count"), ("_attempt",), ("_idempotency_key",)}
)


def check_credentials(playbook: Playbook, context: DocumentContext) -> None:
    """Credentials used by name are declared (001 §1)."""
    for scalar in context.credentials:
        name = str(scalar.value)
        if name not in playbook.keychain:
            context.report(
                "undeclared-auth",
                scalar,
                f"the keychain has no entry `{name}`",
                did_you_mean(name, playbook.keychain)
                or "declare it under `keychain`; as it is, the credential store must know it",
            )


def check_pasted_sql(playbook: Playbook, context: DocumentContext) -> None:
    """Values are bound to SQL, not pasted into it."""
    for occurrence in context.occurrences:
        if occurrence.part.role is not ExpressionRole.INPUT or occurrence.expression.single:
            continue
        task = _task_of(playbook, occurrence)
        kind = context.kinds.get(task.kind) if task is not None else None
        if kind is None or occurrence.part.key not in _sql_inputs(kind.inputs):
            continue
        for offset in _pasted_offsets(occurrence.expression):
            context.report_inside(
                "sql-paste",
                occurrence.scalar,
                offset,
                "this value becomes part of the SQL text, whatever it holds",
                "bind it: put a placeholder here and the value under `params`",
            )


def check_secrets(playbook: Playbook, context: DocumentContext) -> None:
    """No secret goes where it would be kept."""
    for occurrence in context.occurrences:
        step = playbook.steps.get(occurrence.part.step)
        storage = _stored_as(step, occurrence) if step is not None else ""
        if step is None or not storage:
            continue
        for use in occurrence.expression.uses:
            if _is_secret(use, step, occurrence):
                context.report_inside(
                    "secret-in-result",
                    occurrence.scalar,
                    use.offset,
                    f"this secret would be kept as {storage}",
                    "use it in the task that needs it, and keep only its name",
                )


def _task_of(playbook: Playbook, occurrence: ExpressionOccurrence) -> Task | None:
    step = playbook.steps.get(occurrence.part.step)
    index = occurrence.part.task
    return step.tasks[index] if step is not None and 0 <= index < len(step.tasks) else None


@cache
def _sql_inputs(inputs: type[Struct]) -> frozenset[str]:
    return frozenset(key for key, field in fields_of(inputs).items() if _holds_sql(field.type))


def _holds_sql(type_: inspect.Type) -> bool:
    match type_:
        case inspect.Metadata():
            return "sql" in (type_.extra or {}) or _holds_sql(type_.type)
        case inspect.UnionType():
            return any(_holds_sql(option) for option in type_.types)
        case inspect.ListType():
            return _holds_sql(type_.item_type)
        case _:
            return False


def _pasted_offsets(expression: Expression) -> Iterator[int]:
    """Where the `{{ … }}` begin whose values could be anything."""
    start = inside = 0
    for token in tokenize(expression.source):
        if token.type == "variable_begin":
            start, inside = token.offset, token.offset + len(token.text)
        elif token.type == "variable_end":
            uses = [use.path for use in expression.uses if inside <= use.offset < token.offset]
            number = _NUMBER.search(expression.source, inside, token.offset)
            if not number and any(path not in _HARMLESS for path in uses):
                yield start


def _stored_as(step: Step, occurrence: ExpressionOccurrence) -> str:
    """What becomes of the value of this expression if it is kept; empty if a tool only uses it."""
    role = occurrence.part.role
    if role in (
        ExpressionRole.POLICY_WRITE,
        ExpressionRole.TASK_WRITE,
        ExpressionRole.STEP_WRITE,
        ExpressionRole.ARC_WRITE,
    ):
        return "part of the context"
    if role is ExpressionRole.ARC_ARGS:
        return "the args of a token"
    if not 0 <= occurrence.part.task < len(step.tasks):
        return ""
    match step.tasks[occurrence.part.task].kind, role:
        case "noop", ExpressionRole.TASK_ARGS:
            return "the result of a `noop`, which is its args"
        case "playbook", ExpressionRole.TASK_ARGS:
            return "the workload of another execution"
        case "artifact", ExpressionRole.INPUT if occurrence.part.key == "content":
            return "an artifact"
        case _:
            return ""


def _is_secret(use: Use, step: Step, occurrence: ExpressionOccurrence) -> bool:
    """Whether the path is a keychain entry, or what a `secrets` task of this step gave."""
    path, index = use.path, occurrence.part.task
    if path[0] == "keychain":
        return occurrence.part.role in (ExpressionRole.TASK_ARGS, ExpressionRole.INPUT)
    gives_secret = [task.kind == "secrets" for task in step.tasks]
    if path[0] == "event":
        return path[1:2] == ("result",) and gives_secret[-1:] == [True]
    if not 0 <= index < len(gives_secret):
        return False
    if path[0] in ("outcome", "output"):
        return path[1:2] in (("result",), ("data",)) and gives_secret[index]
    if path[0] == "_prev":
        return index > 0 and gives_secret[index - 1]
    return any(
        is_secret and task.label == path[0] for task, is_secret in zip(step.tasks, gives_secret, strict=True)
    )

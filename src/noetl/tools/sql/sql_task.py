"""What a SQL task is to do, whatever the database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from noetl.dsl.document.kinds import Fault
from noetl.model.json import Json
from noetl.model.outcome import ToolError
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import inputs_of
from noetl.tools.sql.sql_inputs import SqlInputs, SqlSpec
from noetl.tools.sql.text import SqlDialect, Statement, plan_binding, split_statements

Inputs = TypeVar("Inputs", bound=SqlInputs)
Spec = TypeVar("Spec", bound=SqlSpec)

KNOBS = ("transaction", "fetch", "pool")
"""What of `spec` is for the tool; the rest is the engine's."""
_CONTROL = {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}


def decode_sql_task(
    call: Call,
    inputs: type[Inputs],
    spec: type[Spec],
    check: Callable[[Mapping[str, Json], Mapping[str, Json]], Iterable[Fault]],
) -> tuple[Inputs, Spec]:
    """The inputs and knobs of a call, but for `rows`, which may be many. ToolError of kind `input`."""
    for fault in check(call.inputs, call.spec):
        raise ToolError("input", f"{fault.message}: {fault.hint}" if fault.hint else fault.message)
    # Millions of rows would be copied and looked into one by one: `open_input_rows` checks them as they go.
    without_rows = structs.replace(
        call, inputs={name: value for name, value in call.inputs.items() if name != "rows"}
    )
    try:
        knobs = msgspec.convert({name: call.spec.get(name) for name in KNOBS}, spec)
    except msgspec.ValidationError as error:
        raise ToolError("input", f"`spec`: {error}") from None
    return inputs_of(without_rows, inputs), knobs


class BoundStatement(NamedTuple):
    """A statement with the values that go into it, in its database's own words.

    `values` is None where nothing is bound. `prefix` says which of the task's statements it is.
    """

    statement: Statement
    text: str
    values: list[Any] | None
    prefix: str

    def position(self, line: int = 1) -> str:
        """The place of a line of the statement, counted from 1, for a message."""
        return f"{self.prefix}line {self.statement.line + line - 1}"


def bind_statements(inputs: SqlInputs, dialect: SqlDialect) -> list[BoundStatement]:
    """The statements of a task in order, values bound. ToolError of kind `input`."""
    statements = _statements(inputs, dialect)
    total = len(statements)
    prefixes = [f"statement {number} of {total}, " if total > 1 else "" for number in range(1, total + 1)]
    pairs = zip(statements, prefixes, strict=True)
    params = inputs.params
    if params is None:
        return [BoundStatement(statement, statement.text, None, prefix) for statement, prefix in pairs]
    bound = []
    taken = highest = 0
    for statement, prefix in pairs:
        try:
            plan = plan_binding(statement, dialect, named=isinstance(params, dict), first=taken)
            bound.append(BoundStatement(statement, plan.text, plan.values(params), prefix))
        except ToolError as error:
            raise ToolError("input", f"{prefix}{error}") from None
        # `%s` and `?` use a list up over all statements; `$1` counts from its beginning in each of them.
        if any(
            placeholder.key is None and placeholder.style != "%%" for placeholder in statement.placeholders
        ):
            taken += len(plan.keys)
        highest = max([highest, taken, *(key + 1 for key in plan.keys if isinstance(key, int))])
    if isinstance(params, list) and highest < len(params):
        message = f"`params` holds {len(params)}, and the SQL has placeholders for {highest}"
        raise ToolError("input", f"{message}: use {dialect.placeholder_styles}")
    return bound


def single_statement(inputs: SqlInputs, dialect: SqlDialect) -> Statement:
    """The statement that rows run through. ToolError of kind `input` if there are more."""
    statements = _statements(inputs, dialect)
    if len(statements) > 1:
        raise ToolError("input", f"rows run through one statement, and there are {len(statements)}")
    return statements[0]


def _statements(inputs: SqlInputs, dialect: SqlDialect) -> list[Statement]:
    sql = inputs.command or inputs.query or inputs.commands or []
    texts = [sql] if isinstance(sql, str) else sql
    statements = [statement for text in texts for statement in split_statements(text, dialect)]
    if not statements:
        raise ToolError("input", "there is no SQL to run: the text is empty")
    return statements


def row_limit(spec: SqlSpec) -> int | None:
    """How many rows of a statement go into the result; None: all."""
    return {"one": 1, "none": 0}.get(spec.fetch or "all")


def in_one_transaction(statements: Sequence[Statement], spec: SqlSpec) -> bool:
    """Whether to put a transaction around them: one alone is one, and a script may have its own."""
    return (
        spec.transaction is not False
        and len(statements) > 1
        and not any(map(controls_transaction, statements))
    )


def controls_transaction(statement: Statement) -> bool:
    """Whether it begins or ends a transaction; going back to a savepoint does not."""
    first = statement.words[:1]
    if not first or first[0] not in _CONTROL or statement.has_body:
        return False
    return not (first[0] == "ROLLBACK" and "TO" in statement.words)

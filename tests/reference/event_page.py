"""The page about events, made from their table and from the bodies."""

import ast
import inspect
import json
import textwrap
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo, fields

from noetl.events.bodies import ParentTask, Patch, Reported, StepDone
from noetl.events.event import Event, envelope
from noetl.events.event_kind import EVENT_KINDS, EventKind
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.wait_question import WaitQuestion

INTRODUCTION = """\
# Events

Everything that happens to an execution is an event, and the events are all there is: the state of an
execution is what folding them gives. An event is never changed; they are numbered 1, 2, 3… without gaps.

## The envelope

```json
{example}
```

| field | meaning |
| --- | --- |
| `event_id` | `EXECUTION_ID/SEQ` |
| `execution_id` | the execution, a UUID of version 7 |
| `seq` | the place in the history of the execution |
| `timestamp` | when the event was recorded: ISO 8601, UTC, microseconds |
| `source` | `server` or `worker`: who says so |
| `name` | one of the names below |
| `entity` | what it is about: `playbook`, `workflow`, `step`, `task`, `loop` or `next` |
| `entity_id` | which one: the execution for `playbook` and `workflow`, else an id as below |
| `status` | how that is now: `in_progress`, `success`, `error` or `paused` |
| `step_run_id` | the run of a step, where the event belongs to one |
| `task_run_id` | the attempt of a task, where the event belongs to one |
| `parent_id` | what the entity came from: a token from a run, a run from a token, an attempt or iteration from its run, an execution from the task that started it (`EXECUTION_ID/TASK_RUN_ID`) |
| `trace_id` | the trace of the request; if it named none, the id of the execution without dashes |
| `worker` | the worker that claimed a run |
| `data` | the fields of the event, all of them |

Fields that do not apply are left out, but for `data`. Where something was denied, discarded or cancelled,
`data.reason` says which.

`noetl executions events ID --envelope draft` prints the same in the words of the [draft](dialects.md): `event_type`, the dotted
name, for `name` (`NextEvaluated` is `next.selected` there), `ts` for `timestamp` and `payload` for `data`.

## Ids

They follow from the numbers of events, so that a fork keeps them.

| id | names |
| --- | --- |
| `t11` | the token that the `TokenEnqueued` with number 11 made |
| `r12` | the run that the `StepScheduled` with number 12 began |
| `r12/7` | iteration 7 of its loop |
| `r12/7/fetch/2/1` | an attempt of the task `fetch`: run, iteration, task, visit, attempt |

## All events

Filters know an event by its name, its dotted name, which is also what templates compare with `event.name`,
and its aliases. The number is what is stored; it is never changed or given again.

| number | name | dotted name | aliases | entity | source | status | meaning |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

Events of source `worker` come from the server where no worker says them: for a step without tools, a
cancelled run, a worker that is lost.

## What they say

Times are microseconds since 1970, UTC.
"""

VALUES = """
## Values

### error

`kind`, `message` and `retryable`; `retry_after` in seconds where it is known; and beside them the details of
that kind, for example `attempts` or `sqlstate`.

### outcome

What a tool said: `status` (`ok` or `error`), `result`, `error`, `meta`, and the blocks of its kind, for
example `http.status`.
"""

LINKED: dict[Any, str] = {
    ErrorInfo: "error",
    Outcome: "outcome",
    Patch: "patch",
    ParentTask: "parent",
    WaitQuestion: "question",
}
WORDS: dict[Any, str] = {
    Any: "any",
    str: "string",
    int: "integer",
    bool: "boolean",
    types.NoneType: "null",
    **{struct: f"[{name}](#{name})" for struct, name in LINKED.items()},
}


def events_page() -> str:
    example = Event(31, 1_793_700_000_123_456, StepDone(run="r12", result={"rows": 3}))
    example_json = json.dumps(envelope(example, "019a48f3-6a00-7c3e-9d52-6b1f0e8a4c17"), indent=2)
    rows = "\n".join(_row(kind) for kind in EVENT_KINDS)
    sections = [
        f"\n### {kind.name}\n\n{_docstring(kind.body) or kind.meaning}\n{_table(kind.body)}"
        for kind in EVENT_KINDS
    ]
    values = [
        f"\n### {LINKED[struct]}\n\n{_docstring(struct)}\n{_table(struct)}"
        for struct in (Patch, ParentTask, WaitQuestion)
    ]
    return "".join([INTRODUCTION.format(example=example_json, rows=rows), *sections, VALUES, *values])


def _row(kind: EventKind) -> str:
    status = (kind.status.__doc__ or "")[:-1] if callable(kind.status) else f"`{kind.status}`"
    aliases = ", ".join(f"`{alias}`" for alias in kind.aliases)
    name = f"[{kind.name}](#{kind.name.lower()})"
    cells = (kind.number, name, f"`{kind.dotted}`", aliases, kind.entity, kind.source, status, kind.meaning)
    return f"| {' | '.join(map(str, cells))} |"


def _docstring(struct: type[msgspec.Struct]) -> str:
    """As its author wrote it; a Struct without one has that of its base."""
    return inspect.cleandoc(struct.__dict__.get("__doc__") or "")


def _table(struct: type[msgspec.Struct]) -> str:
    hidden = set(Reported.__struct_fields__) if issubclass(struct, Reported) else set()
    visible = [field for field in fields(struct) if field.name not in hidden]
    hints, notes = get_type_hints(struct), _notes(struct)
    heading = ["field", "type", "default", *(["meaning"] if notes else [])]
    rows = [
        [f"`{field.name}`", _word(hints[field.name]), _default(field), notes.get(field.name, "")]
        for field in visible
    ]
    lines = [heading, ["---"] * len(heading), *(row[: len(heading)] for row in rows)]
    return "".join(["\n", *(f"| {' | '.join(line)} |\n" for line in lines)])


def _notes(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The strings below the fields, which Python itself does not keep."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(declared, ast.ClassDef)
    notes = {}
    for field, below in zip(declared.body, declared.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(note))):
                notes[name] = " ".join(note.split())
    return notes


def _word(hint: Any) -> str:
    if hint in WORDS:
        return WORDS[hint]
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return " \\| ".join(f"`{value}`" for value in arguments)
        case origin if origin in (Union, types.UnionType):
            return " \\| ".join(_word(argument) for argument in arguments)
        case origin if origin is tuple:
            item = _word(arguments[0])
            return f"list of ({item})" if "|" in item else f"list of {item}"
        case origin if origin is dict:
            return "object" if arguments[1] is Any else f"object of {_word(arguments[1])}"
    raise SystemExit(f"no word for the type {hint}")


def _default(field: FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"`{json.dumps(value)}`"

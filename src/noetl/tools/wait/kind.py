from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind, Seconds
from noetl.model.json import Json
from noetl.model.wait_question import problem_of_schema
from noetl.tools.host.input_rules import Inputs, exactly_one, has_template, literal_text


class WaitInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to wait for. The wait survives restarts and holds no worker."""

    seconds: Annotated[Seconds | None, Meta(description="Seconds to wait.")] = None
    until: Annotated[
        str | None, Meta(description="Time to wait for, such as `2030-01-31T09:00:00Z`; UTC unless it says.")
    ] = None
    signal: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="Signal to wait for; its payload is the result. `spec.timeout` bounds the wait."),
    ] = None
    title: Annotated[str | None, Meta(description="What is asked, in a line; for who answers.")] = None
    description: Annotated[str | None, Meta(description="What there is to know before answering.")] = None
    schema: Annotated[
        dict[str, Any] | None,
        Meta(
            description="JSON Schema of the answer; one that does not fit is refused. Forms are made of it."
        ),
    ] = None
    assignee: Annotated[
        str | list[str] | None,
        Meta(description="Names of tokens that may answer, and admins. Default: every operator."),
    ] = None


_ASKING = ("title", "description", "schema", "assignee")


def _has_template_inside(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template_inside, value.values()))
    if isinstance(value, list):
        return any(map(_has_template_inside, value))
    return has_template(value)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """One thing to wait for, and a time that is one."""
    yield from exactly_one(
        inputs, "seconds", "until", "signal", hint="to bound the wait for a signal use `spec.timeout`"
    )
    if "signal" not in inputs:
        for key in _ASKING:
            if key in inputs:
                yield Fault(f"`{key}` is for who sends a `signal`, and none is waited for", key=key)
    schema = inputs.get("schema")
    if (
        isinstance(schema, dict)
        and not _has_template_inside(schema)
        and (problem := problem_of_schema(schema))
    ):
        yield Fault(f"`schema` is no JSON Schema: {problem}", key="schema")
    until = literal_text(inputs.get("until"))
    if until is not None and not _is_time(until):
        yield Fault(f"`{until}` is not a time", key="until", hint="write it as `2030-01-31T09:00:00Z`")


EXAMPLE = """\
name: approval
kind: wait
signal: approved
title: Refund {{ args.order }}?
schema: { type: object, properties: { ok: { type: boolean } }, required: [ok] }
assignee: [ann, bob]
spec: { timeout: 3600 }
"""

KIND = Kind(
    name="wait",
    summary="Waits for some time, until a time, or for a signal, without holding a worker.",
    result="The payload of the signal, else nothing.",
    example=EXAMPLE,
    inputs=WaitInputs,
    check=check,
    reads=frozenset(),
)

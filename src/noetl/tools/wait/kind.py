from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind, Seconds
from noetl.tools.host.input_rules import Inputs, exactly_one, literal_text


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
    until = literal_text(inputs.get("until"))
    if until is not None and not _is_time(until):
        yield Fault(f"`{until}` is not a time", key="until", hint="write it as `2030-01-31T09:00:00Z`")


EXAMPLE = """\
name: approval
kind: wait
signal: approved
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

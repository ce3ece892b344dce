"""Decides a whole history again and says where it comes out differently."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from noetl.events.event import Event
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.plan import Plan
from noetl.kernel.verify.difference import Difference
from noetl.kernel.verify.verifier import Verifier

__all__ = ["Difference", "Verification", "verify"]


class Verification(Struct, frozen=True):
    """What deciding again has shown. After the first difference nothing more can be told.

    `verdicts` counts the events that were decided again, `unjudged` those among the others that rest
    on secrets, or on stored values that could not be read.
    """

    execution_id: str
    events: int
    verdicts: int
    unjudged: int
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()


def verify(
    plan: Plan, execution_id: str, events: Sequence[Event], read: Callable[[str], Any] | None = None
) -> Verification:
    """Decide every event of a history again, on the state before it and at its own time.

    `read` gives the stored value under a key, or raises LookupError; without it, what rests on stored
    values is not judged.

    Taken as recorded: what people asked for, what tools gave, and what a worker's clock said, if that
    is within five minutes of the server's.
    """
    review = Verifier(plan, execution_id, events, read)
    difference = next(review.differences(), None)
    return Verification(
        execution_id=execution_id,
        events=len(events),
        verdicts=review.verdicts,
        unjudged=review.unjudged,
        differences=(difference,) if difference is not None else (),
        notes=tuple(_notes(review)),
    )


def _notes(review: Verifier) -> Iterator[str]:
    if review.decider > DECIDER:  # earlier rules are known, and were tried where they had decided
        yield f"version {review.decider} of the rules decided; they were tried with version {DECIDER}"
    if review.foreign:
        yield f"the first {review.foreign} events came about with another playbook and are not judged"
    if review.unjudged:
        yield f"{review.unjudged} verdicts rest on secrets or unreadable stored values and are not judged"

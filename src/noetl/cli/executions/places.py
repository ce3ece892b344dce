"""Which step an event belongs to."""

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id, token_id


class EventSteps:
    """The steps of runs and tokens. It must be shown all events of an execution, in order."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}

    def step_of(self, event: Event) -> str:
        """The name of the event's step; empty if it concerns none."""
        body = event.body
        match body:
            case of.StepScheduled():
                self._steps[run_id(event.seq)] = body.step
                return body.step
            case of.TokenEnqueued():
                self._steps[token_id(event.seq)] = body.step
                return body.step
            case of.TokenParked() | of.TokenAdmitted() | of.TokenDiscarded():
                return self._steps.get(body.token, "")
            case _:
                return self._steps.get(getattr(body, "run", ""), "")

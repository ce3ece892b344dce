"""What the engine says about its executions, and who may hear it: events go one way."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from noetl.engine.execution import LiveExecution
from noetl.events.bodies import EventBody
from noetl.model.run_rows import ReadyRun

EventHandler: TypeAlias = Callable[[LiveExecution, Any, int], None]
"""Gets the body of an event, of the type that it was registered for, and the event's number."""


class EngineListener:
    """Hears what happens to executions, in the order of subscription; hears nothing unless it says so.

    `handlers`, `pending` and `ready` are called as soon as something is decided, before it is durable: what
    they do must wait for `when_durable` if a crash could undo its cause.
    """

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        """What to call for which event. Asked once, at the subscription."""
        return {}

    def pending(self, live: LiveExecution) -> None:
        """Something waits to be written."""

    def ready(self, live: LiveExecution) -> None:
        """A run may be claimed."""

    async def resumed(self, live: LiveExecution) -> None:
        """An execution was opened from the store and goes on here."""

    def committed(self, events: int, seconds: float) -> None:
        """So many events became durable in one commit, which took so long."""

    def offered(self, execution_id: str, run: str, ready: ReadyRun) -> None:
        """A run that was ready when the last server ended; its execution is not in memory."""

    def loaded(self, live: LiveExecution) -> None:
        """It is in memory again, as it was left."""

    def evicted(self, live: LiveExecution) -> None:
        """Its state is about to leave memory; it is the same object when it comes back."""

    def undone(self, live: LiveExecution) -> None:
        """Somebody else wrote to it: what was decided here and is not durable did not happen.

        It is about to be read again, and then to be `reloaded`.
        """

    def reloaded(self, live: LiveExecution) -> None:
        """Somebody else wrote to it: it is in memory as it is now, unless it has ended or is not here."""

    def outdated(self, live: LiveExecution) -> None:
        """Somebody else wrote to it, and its state is about to leave memory: nothing here rests on it."""

    def dropped(self, live: LiveExecution) -> None:
        """It was never written, because another one has its key: nothing that was decided of it happened."""

    def over(self, live: LiveExecution) -> None:
        """The execution has ended, and that is durable."""

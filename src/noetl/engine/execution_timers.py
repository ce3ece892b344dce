"""What executions of this process wait for by time alone."""

from collections.abc import Mapping

from noetl.engine.execution import LiveExecution
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.registry import ExecutionRegistry
from noetl.engine.timers import Timers
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.identifiers import run_id
from noetl.kernel.net.commands import TimerFired


class ExecutionTimers(EngineListener):
    """Has executions that are in memory until they end hear when a time has come that they wait for."""

    def __init__(self, registry: ExecutionRegistry, timers: Timers) -> None:
        self._registry = registry
        self._timers = timers

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            of.WorkflowStarted: lambda live, body, _: self._arm(live, body.deadline, ""),
            of.StepScheduled: lambda live, body, seq: self._arm(live, body.deadline, run_id(seq)),
            of.TokenParked: lambda live, body, _: self._arm(live, body.deadline, body.token),
            of.RunSuspended: lambda live, body, _: self._arm(live, body.until, body.run, body.iteration),
            of.ExecutionRetried: lambda live, *_: self._arm_all(live),
            of.IterationsRedriven: lambda live, *_: self._arm_all(live),
        }

    async def resumed(self, live: LiveExecution) -> None:
        self._arm_all(live)

    def _arm_all(self, live: LiveExecution) -> None:
        """All timers of a state that was folded."""
        state = live.state
        self._arm(live, state.deadline, "")
        for name, token in state.tokens.items():
            self._arm(live, token.deadline, name)
        for run in state.runs.values():
            self._arm(live, run.deadline, run.id)
            for frame in run.frames.values():
                if frame.suspension is not None:
                    self._arm(live, frame.suspension.until, run.id, frame.index)

    def _arm(self, live: LiveExecution, due: int | None, target: str, iteration: int = 0) -> None:
        if due is not None:
            self._timers.at(due, lambda: self._fire(live, TimerFired(target, iteration)))

    def _fire(self, live: LiveExecution, fired: TimerFired) -> None:
        if live.execution_id in self._registry and not live.state.over:
            live.submit(fired)

"""Runs playbooks through the Python API, and reads what happened back with the command line."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import noetl
from noetl.api import open_local
from noetl.cli import main
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.summary import execution_of
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.settings import read_settings
from tests.cli.command_line import CompletedCommand as Command
from tests.cli.command_line import run as command
from tests.playbooks import document_of


class EndedExecution(NamedTuple):
    """An execution and its events, as envelopes."""

    execution: noetl.Execution
    events: list[dict[str, Any]]

    @property
    def result(self) -> Any:
        return self.execution.result

    @property
    def status(self) -> str:
        return self.execution.status

    @property
    def error(self) -> dict[str, Any]:
        assert self.execution.error is not None, self.execution
        return self.execution.error

    @property
    def ctx(self) -> dict[str, Any]:
        return self.execution.ctx

    @property
    def names(self) -> list[str]:
        return [event["name"] for event in self.events]

    @property
    def statuses(self) -> dict[str, str]:
        """How each step ended."""
        return {name: step["status"] for name, step in self.execution.steps.items()}

    def of(self, *names: str) -> list[dict[str, Any]]:
        """The envelopes of these events."""
        return [event for event in self.events if event["name"] in names]

    def data(self, name: str) -> list[dict[str, Any]]:
        """What the events of this name say."""
        return [event["data"] for event in self.of(name)]

    def runs(self, step: str) -> list[str]:
        """The ids of the runs of a step."""
        return [event["entity_id"] for event in self.of("StepScheduled") if event["data"]["step"] == step]

    def tasks(self) -> list[str]:
        """The labels of all attempts in the order in which they began."""
        return [data["task"] for data in self.data("TaskStarted")]


class Engine:
    """A working directory with a store in it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self._capture = capture

    def __call__(self, text: str, workload: dict[str, Any] | None = None, **options: Any) -> EndedExecution:
        """Runs a document, or a fragment of one, to its end."""
        execution = noetl.run(document_of(text.lstrip()), workload, **options)
        return EndedExecution(execution, self.events(execution.execution_id))

    def events(self, execution_id: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.command_output("executions", "events", execution_id)["events"]
        return events

    def command_output(self, *arguments: str) -> Any:
        """What a command that succeeds prints as JSON, run in this process."""
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "-o", "json"])
        assert ended.value.code == 0, self._capture.readouterr()
        return json.loads(self._capture.readouterr().out)

    def command(self, *arguments: str, stdin: str = "") -> Command:
        """A command in a process of its own."""
        return command(*arguments, cwd=self.folder, stdin=stdin)

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document_of(text.lstrip()))
        return file

    def run_with(
        self, text: str, work: "Callable[[LiveConversation], Awaitable[None]]", **options: Any
    ) -> EndedExecution:
        """Runs a document to its end while `work` talks to it."""

        async def run_to_end() -> noetl.Execution:
            talk = LiveConversation()
            async with open_local(read_settings({}), watch=talk.record_events) as (local, _):
                source = PlaybookSource(document_of(text.lstrip()), "playbook.yaml")
                talk.local, talk.id = local, await local.start(source, **options)
                await work(talk)
                return execution_of(await local.wait_for_end(talk.id))

        execution = asyncio.run(run_to_end())
        return EndedExecution(execution, self.events(execution.execution_id))

    def retry(self, execution_id: str) -> EndedExecution:
        """Goes on with a failed execution."""
        return self._run_to_end(lambda local: local.retry(execution_id))

    def fork(self, execution_id: str, **options: Any) -> EndedExecution:
        """A new execution with the beginning of another one."""
        return self._run_to_end(lambda local: local.fork(execution_id, **options))

    def _run_to_end(self, begin: Callable[[Local], Awaitable[str]]) -> EndedExecution:
        async def run_to_end() -> noetl.Execution:
            async with open_local(read_settings({})) as (local, _):
                return execution_of(await local.wait_for_end(await begin(local)))

        execution = asyncio.run(run_to_end())
        return EndedExecution(execution, self.events(execution.execution_id))


class LiveConversation:
    """An execution that runs here and can be talked to."""

    local: Local
    id: str

    def __init__(self) -> None:
        self.event_names: list[tuple[str, str]] = []
        self._new_events = asyncio.Event()

    def record_events(self, execution_id: str, events: Sequence[Event], _: ExecutionState) -> None:
        self.event_names += [(execution_id, type(event.body).__name__) for event in events]
        self._new_events.set()

    async def wait_for(self, name: str, times: int = 1) -> None:
        """Returns when so many events of this name are durable, in all executions together."""
        while [event_name for _, event_name in self.event_names].count(name) < times:
            self._new_events.clear()
            await self._new_events.wait()

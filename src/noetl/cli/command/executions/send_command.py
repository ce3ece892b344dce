"""Verbs that ask something of an execution and run nothing themselves."""

from collections.abc import Awaitable, Callable
from typing import Literal

from noetl.cli import console
from noetl.cli.command_failure import CommandFailure
from noetl.cli.report.event_line import reopened_text
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.store_access import find_owner, with_store
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.history.lookup import find_execution
from noetl.engine.inbox import RemoteCommand
from noetl.engine.remote_control import RemoteControl
from noetl.engine.service import AlreadyRunning
from noetl.events.bodies import ExecutionRetried, IterationsRedriven
from noetl.home import result_store_of
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Redrive, Retry
from noetl.ports.store import ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.ownership import owners_in

Doubts = Callable[[Store, ExecutionRecord], Awaitable[list[str]]]
"""What may be wrong with a command for this execution."""


def send_command(
    configuration: Configuration,
    name: str,
    command: RemoteCommand,
    done_text: str,
    doubts: Doubts | None = None,
) -> int:
    """Has it recorded by whoever runs the execution, or here if nobody does. Raises CommandFailure."""
    return control_execution(
        configuration,
        name,
        done_text,
        lambda control, execution_id: control.send(execution_id, command),
        doubts,
    )


def is_owned(configuration: Configuration, name: str) -> bool:
    """Whether a process runs it. Raises CommandFailure."""

    async def look(home: Home, store: Store) -> bool:
        return await find_owner(home, store, await find_execution(store, name)) is not None

    return with_store(configuration, look)


def reopen_elsewhere(
    configuration: Configuration, name: str, command: Retry | Redrive, done_text: str
) -> int:
    """Has the process that runs it open it again at what failed. Raises CommandFailure."""

    async def ask(control: RemoteControl, execution_id: str) -> Literal["done", "sent"]:
        answer, events = await control.reopen_elsewhere(execution_id, command)
        for event in events:
            if isinstance(event.body, ExecutionRetried | IterationsRedriven):
                console.say(reopened_text(event.body))
        return answer

    return control_execution(configuration, name, done_text, ask)


def control_execution(
    configuration: Configuration,
    name: str,
    done_text: str,
    work: Callable[[RemoteControl, str], Awaitable[Literal["done", "sent"]]],
    doubts: Doubts | None = None,
) -> int:
    """Does something to an execution, and says what has become of it. Raises CommandFailure."""
    warnings: list[str] = []

    async def apply(home: Home, store: Store) -> tuple[ExecutionRecord, str]:
        execution = await find_execution(store, name)
        execution_id = execution.execution_id
        playbooks = Playbooks(allow_kinds=configuration.settings.allow_kinds)
        control = RemoteControl(
            store, owners_in(home), result_store_of(configuration, home, store), playbooks
        )
        if doubts is not None:
            warnings.extend(await doubts(store, execution))
        answer = await work(control, execution_id)
        record = await store.execution(execution_id)
        assert record is not None  # noqa: S101 - `find_execution` found it
        return record, answer

    try:
        record, answer = with_store(configuration, apply, writing=True)
    except Refused as refusal:
        raise CommandFailure("refused", str(refusal), hint=getattr(refusal, "hint", "")) from None
    except AlreadyRunning as already_running:
        raise CommandFailure(
            "running", str(already_running), hint="one process at a time runs an execution"
        ) from None
    _print_answer(configuration, record, answer, done_text, warnings)
    return 0


def _print_answer(
    configuration: Configuration, record: ExecutionRecord, answer: str, done_text: str, warnings: list[str]
) -> None:
    if configuration.settings.output == "json":
        console.write_json(
            {
                "execution_id": record.execution_id,
                "status": record.status,
                "recorded": answer == "done",
                "warnings": warnings,
            }
        )
        return
    for warning in warnings:
        console.say(f"warning: {console.visible(warning)}")
    if answer == "sent":
        console.say(f"{record.execution_id}: sent to its owner, which has not read it yet")
        return
    console.say(f"{record.execution_id}: {done_text}; it is {record.status}")
    if not record.ended_at and record.status == "running":
        show = FollowUp(configuration).executions_command("show", record.execution_id)
        console.say(f"  how it is, and how to go on: {show}")

"""Verbs that ask something of an execution and run nothing themselves."""

from collections.abc import Awaitable, Callable
from typing import Literal

from noetl.cli import console
from noetl.cli.command_failure import Failure
from noetl.cli.report.follow_up import Again
from noetl.cli.store_access import consult
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.history.lookup import find_execution
from noetl.engine.inbox import Order
from noetl.engine.remote_control import Desk
from noetl.engine.service import AlreadyRunning
from noetl.home import results_of
from noetl.kernel import Refused
from noetl.ports.store import ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners


def ask(configuration: Configuration, name: str, order: Order, said: str) -> int:
    """Has it recorded by whoever runs the execution, or here if nobody does. Raises Failure."""
    return tell(configuration, name, said, lambda desk, found: desk.ask(found, order))


def tell(
    configuration: Configuration,
    name: str,
    said: str,
    work: Callable[[Desk, str], Awaitable[Literal["done", "sent"]]],
) -> int:
    """Does something at the desk of the store, and says what has become of the execution. Raises Failure."""

    async def whole(home: Home, store: Store) -> tuple[ExecutionRecord, str]:
        found = (await find_execution(store, name)).execution_id
        playbooks = Playbooks(allow_kinds=configuration.settings.allow_kinds)
        desk = Desk(store, Owners(home.owners), results_of(configuration, home, store), playbooks)
        answer = await work(desk, found)
        record = await store.execution(found)
        assert record is not None  # noqa: S101 -- it was found
        return record, answer

    try:
        record, answer = consult(configuration, whole, writing=True)
    except Refused as refusal:
        raise Failure("refused", str(refusal)) from None
    except AlreadyRunning as running:
        raise Failure("running", str(running), hint="one process at a time runs an execution") from None
    _say(configuration, record, answer, said)
    return 0


def _say(configuration: Configuration, record: ExecutionRecord, answer: str, said: str) -> None:
    if configuration.settings.output == "json":
        console.write_json(
            {"execution_id": record.execution_id, "status": record.status, "recorded": answer == "done"}
        )
        return
    if answer == "sent":
        console.say(f"{record.execution_id}: sent to its owner, which has not read it yet")
        return
    console.say(f"{record.execution_id}: {said}; it is {record.status}")
    if not record.ended_at and record.status == "running":
        show = Again(configuration).executions("show", record.execution_id)
        console.say(f"  how it is, and how to go on: {show}")

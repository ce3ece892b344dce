"""`noetl executions logs`."""

import asyncio
from collections.abc import Iterable

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command.executions.follow_events import follow_events
from noetl.cli.report.log_text import log_origin
from noetl.cli.store_access import with_store
from noetl.engine.history.lookup import find_execution
from noetl.engine.task_log import LogLine, TaskLog
from noetl.ports.store import Store
from noetl.settings import Settings
from noetl.stores.home_folder import Home


@click.command("logs")
@options.execution
@options.step
@click.option("--task", metavar="TASK", help="Only what this task wrote.")
@options.follow
@options.store_options
def command(
    *, name: str, step: str | None, task: str | None, follow: bool, **store_flags: str | None
) -> None:
    """Print what the tasks of an execution wrote.

    JSON is one document; with --follow it is one for each line, each on a line of its own.
    """
    configuration = options.read_configuration(**store_flags)
    settings = configuration.settings

    def wanted(lines: Iterable[LogLine]) -> list[LogLine]:
        return [
            line for line in lines if line.full or (step in (None, line.step) and task in (None, line.task))
        ]

    async def work(home: Home, store: Store) -> None:
        execution_id = (await find_execution(store, name)).execution_id
        tail = TaskLog(home.logs).tail(execution_id)
        if not follow:
            _print(wanted(tail.read()), settings)
            return
        ended = asyncio.Event()
        ending = asyncio.create_task(_wait_for_end(home, store, execution_id, ended))
        async for lines in tail.follow(ended):
            if (chosen := wanted(lines)) and not _print_lines(chosen, settings):
                ending.cancel()
                return
        await ending

    with_store(configuration, work)


async def _wait_for_end(home: Home, store: Store, execution_id: str, ended: asyncio.Event) -> None:
    """Sets `ended` when nothing more can come."""
    try:
        async for _ in follow_events(home, store, execution_id):
            pass
    finally:
        ended.set()


def _print(lines: list[LogLine], settings: Settings) -> None:
    if settings.output == "json":
        console.write_json({"lines": [msgspec.to_builtins(line) for line in lines]})
    elif lines:
        _print_lines(lines, settings)
    else:
        console.say("nothing was written")


def _print_lines(lines: list[LogLine], settings: Settings) -> bool:
    if settings.output == "json":
        return console.write_json_lines(msgspec.to_builtins(line) for line in lines)
    paint = console.stdout_paint(color=settings.color)
    return console.write_text("".join(f"{_text(line, paint)}\n" for line in lines))


def _text(line: LogLine, paint: console.Paint) -> str:
    head = paint("faint", f"{line.ts}  {console.visible(log_origin(line))}".rstrip())
    return f"{head}  {console.visible(line.text)}"

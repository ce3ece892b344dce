"""`noetl executions logs`."""

import asyncio
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command.executions.follow_events import follow_events
from noetl.cli.format import local_time
from noetl.cli.report.event_line import log_origin
from noetl.cli.store_access import with_store
from noetl.cli.task_logs import open_logs
from noetl.engine.history.family_log import FamilyLine, FamilyLog
from noetl.engine.history.lookup import find_execution
from noetl.model.timestamp import parse_iso
from noetl.ports.store import Store
from noetl.settings import Settings
from noetl.stores.home_folder import Home


@click.command("logs")
@options.execution
@options.step
@click.option("--task", metavar="TASK", help="Only what this task wrote.")
@options.follow
@options.store_or_server_options
def command(
    *, name: str, step: str | None, task: str | None, follow: bool, **store_flags: str | None
) -> None:
    """Print what the tasks of an execution and of its children wrote.

    JSON is one document; with --follow it is one for each line, each on a line of its own.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import logs_remote

        logs_remote(configuration, name, step=step, task=task, follow=follow)
        return
    settings = configuration.settings

    def wanted(lines: Iterable[FamilyLine]) -> list[FamilyLine]:
        return [
            written
            for written in lines
            if written.line.full or (step in (None, written.line.step) and task in (None, written.line.task))
        ]

    async def work(home: Home, store: Store) -> None:
        record = await find_execution(store, name)
        async with open_logs(configuration, home, store) as logs:
            family = FamilyLog(store, logs, record)
            if not follow:
                _print(wanted(await family.read()), settings)
                return
            ended = asyncio.Event()
            ending = asyncio.create_task(_wait_for_end(home, store, record.execution_id, ended))
            async for lines in family.follow(ended):
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


def _print(lines: list[FamilyLine], settings: Settings) -> None:
    if settings.output == "json":
        console.write_json({"lines": [_json(written) for written in lines]})
    elif lines:
        _print_lines(lines, settings)
    else:
        console.say("nothing was written")


def _print_lines(lines: list[FamilyLine], settings: Settings) -> bool:
    if settings.output == "json":
        return console.write_json_lines(map(_json, lines))
    paint = console.stdout_paint(color=settings.color)
    return console.write_text("".join(f"{_text(written, paint)}\n" for written in lines))


def _json(written: FamilyLine) -> dict[str, Any]:
    return {**msgspec.to_builtins(written.line), "execution_id": written.execution_id}


def _text(written: FamilyLine, paint: console.Paint) -> str:
    line = written.line
    origin = log_origin(line)
    if written.child_path:
        origin = f"[{written.child_path}] {origin}"
    head = paint("faint", f"{local_time(parse_iso(line.ts))}  {console.visible(origin)}".rstrip())
    return f"{head}  {console.visible(line.text)}"

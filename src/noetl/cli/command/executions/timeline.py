"""`noetl executions timeline`."""

import shutil

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.file_access import write_file
from noetl.cli.inspection import Inspector, inspect_execution
from noetl.cli.report.timeline_text import timeline_lines
from noetl.graph.gantt import gantt_svg
from noetl.ports.execution_views import RunPage


@click.command("timeline")
@options.execution
@options.at_event
@click.option(
    "-f",
    "--file",
    "out",
    type=options.FileName(),
    metavar="OUT.svg",
    help="Write it as a picture to this file.",
)
@options.tools
@options.store_or_server_options
def command(*, name: str, at: int | None, out: str | None, **store_flags: str | None) -> None:
    """Show the runs of an execution in time.

    A bar for each run: dotted while it waits, full while it is worked on. Idle time is folded.
    """
    configuration = options.read_configuration(**store_flags)
    page = inspect_execution(
        configuration, name, lambda inspector, target: _all_runs(inspector, target, at or 0)
    )
    if out is not None:
        write_file(out, gantt_svg(page).encode())
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(page))
    elif out is not None:
        console.say(f"wrote {console.visible(out)}")
    else:
        width = shutil.get_terminal_size().columns
        console.write_text("".join(f"{line}\n" for line in timeline_lines(page, width)))


async def _all_runs(inspector: Inspector, execution_id: str, at: int) -> RunPage:
    page = await inspector.runs(execution_id, at=at)
    runs, cursor = list(page.runs), page.next_cursor
    while cursor is not None:
        following = await inspector.runs(execution_id, at=page.at, cursor=cursor)
        runs += following.runs
        cursor = following.next_cursor
    return msgspec.structs.replace(page, runs=runs, next_cursor=None)

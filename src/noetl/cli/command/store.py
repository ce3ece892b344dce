"""`noetl store`."""

import asyncio

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import DAY, pluralize
from noetl.model.timestamp import now_micros
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home


@click.group()
def store() -> None:
    """Check and tidy the store of executions."""


@store.command()
@click.option(
    "--rebuild", is_flag=True, help="First make everything again that follows from the events alone."
)
@options.tools
@options.store_options
def check(*, rebuild: bool, **store_flags: str | None) -> int:
    """Check the store, and fold every execution in it again.

    Exits with 1 if something is wrong.
    """
    from noetl.cli.store_access import with_store
    from noetl.engine.history.store_check import StoreReport, check_store

    configuration = options.read_configuration(**store_flags)

    async def work(_home: Home, store: Store) -> StoreReport:
        return await check_store(store, configuration.settings.allow_kinds, rebuild=rebuild)

    result = with_store(configuration, work, writing=rebuild)
    if configuration.settings.output == "json":
        problems = [
            {"execution_id": problem.execution_id or None, "message": problem.message}
            for problem in result.problems
        ]
        console.write_json(
            {
                "ok": not problems,
                "executions": result.executions,
                "problems": problems,
                "unchecked_appends": result.unchecked_appends,
            }
        )
    else:
        for problem in result.problems:
            console.write_text(f"{problem.execution_id or 'store'}: {console.visible(problem.message)}\n")
        summary = f"{pluralize(result.executions, 'execution')}, {pluralize(len(result.problems), 'problem')}"
        if result.unchecked_appends:
            appends = pluralize(result.unchecked_appends, "append")
            summary += f"; {appends} of an older release without a checksum"
        console.write_text(summary + "\n")
    return 1 if result.problems else 0


@store.command()
@click.argument("file", type=options.FileName(), metavar="FILE")
@click.option("--without-key", is_flag=True, help="Leave out the key that seals stored credentials.")
@options.store_options
def backup(file: str, *, without_key: bool, **store_flags: str | None) -> None:
    """Copy store, results, logs and key into one file, also while a server uses them.

    FILE is an archive (tar): unpacked into an empty folder it is a home again.
    """
    from pathlib import Path

    from noetl.cli.store_access import open_home
    from noetl.stores.home_backup import BackupExists, back_up_home

    configuration = options.read_configuration(**store_flags)
    settings = configuration.settings

    async def find() -> Home:
        home, opened = open_home(configuration, writing=False)
        await opened.close()
        return home

    home = asyncio.run(find())
    try:
        report = back_up_home(home, Path(file), with_key=not without_key)
    except BackupExists as error:
        raise CommandFailure("file", str(error), hint="name another file") from None
    except OSError as error:
        raise CommandFailure("file", f"{file}: {error.strerror or error}", exit_code=3) from None
    elsewhere = [url for url in (settings.result_store, *settings.result_stores) if url]
    if settings.output == "json":
        console.write_json(
            {
                "file": file,
                "home": str(home.folder),
                "bytes": report.bytes,
                "results": report.results,
                "key": report.key,
                "elsewhere": elsewhere,
            }
        )
        return
    console.write_text(f"{file}: {report.bytes:,} bytes, {pluralize(report.results, 'result')}\n")
    if report.key:
        console.say("the key of stored credentials is in it: who has this file can read them")
    for url in elsewhere:
        console.say(f"not in it: the results in {console.visible(url)}")


@store.command()
@options.store_options
def migrate(**store_flags: str | None) -> None:
    """Bring the store to the form that this release uses.

    Makes one if there is none. Every command does the same when it opens the store.
    """
    configuration = options.read_configuration(**store_flags)
    url, before, after = _migrate(configuration)
    if configuration.settings.output == "json":
        console.write_json({"store": url, "from": before, "version": after})
    elif before == after:
        console.write_text(f"{console.visible(url)} has version {after}: nothing to do\n")
    else:
        was = f"from version {before}" if before else "new"
        console.write_text(f"{console.visible(url)} has version {after} now ({was})\n")


def _migrate(configuration: Configuration) -> tuple[str, int, int]:
    """Opens the store, which migrates it, or makes it; its URL and its version before and after.

    A version of 0: there was no store. Raises CommandFailure, StoreError.
    """
    from noetl.home import home_of, store_url
    from noetl.stores import open_store, store_file_of
    from noetl.stores.sqlite.connection import SCHEMA_VERSION, file_schema_version

    url = store_url(configuration)
    file = store_file_of(url)
    if file is None:
        raise CommandFailure(
            "store-url", f"{url} is memory, which keeps nothing", hint="sqlite:///path.db names a file"
        )
    before = file_schema_version(str(file)) if file.is_file() else 0
    if not configuration.settings.store:
        home_of(configuration).make()

    async def open_once() -> None:
        await open_store(url).close()

    asyncio.run(open_once())
    return url, before, SCHEMA_VERSION


@store.command()
@click.option(
    "--days", type=click.IntRange(1), metavar="N", help="Keep so many days.  [default: `keep_days`]"
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@options.yes
@options.store_options
def prune(*, days: int | None, dry_run: bool, yes: bool, **store_flags: str | None) -> None:
    """Delete executions that are older than what is kept.

    With their results and logs. What has not ended, or is owned by a process, stays. Asks first on a
    terminal; a script is not asked.
    """
    from noetl.cli.command.executions.prune import prune_executions as prune_store

    configuration = options.read_configuration(**store_flags)
    before = None if days is None else max(0, now_micros() - days * DAY)
    prune_store(configuration, before=before, dry=dry_run, yes=yes)

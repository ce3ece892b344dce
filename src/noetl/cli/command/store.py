"""`noetl store`."""

import asyncio
import sys

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import DAY, pluralize
from noetl.model.store_url import without_password
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
    from noetl.home import store_url
    from noetl.model.store_url import is_database_url
    from noetl.stores.home_backup import BackupExists, back_up_home

    configuration = options.read_configuration(**store_flags)
    settings = configuration.settings
    if is_database_url(store_url(configuration)):
        hint = "pg_dump copies it while it is used; keep the key of stored credentials beside the copy"
        raise CommandFailure("store-url", "the store is a database, not a file of this machine", hint=hint)

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
@click.argument("directory", type=options.FileName(), metavar="DIR")
@options.store_options
def export(directory: str, **store_flags: str | None) -> None:
    """Write executions and events as tables of Parquet, and add what is new when it is called again.

    DIR has a folder for each table, and views.sql, with which DuckDB reads them.
    """
    from pathlib import Path

    from noetl.cli.store_access import with_store
    from noetl.engine.archive.parquet_archive import ArchiveUnusable
    from noetl.engine.archive.store_export import ExportReport, export_store

    configuration = options.read_configuration(**store_flags)

    async def work(_home: Home, store: Store) -> ExportReport:
        return await export_store(store, Path(directory))

    try:
        report = with_store(configuration, work)
    except ArchiveUnusable as error:
        raise CommandFailure("export", str(error), hint=error.hint, exit_code=3) from None
    except OSError as error:
        raise CommandFailure("export", f"{directory}: {error.strerror or error}", exit_code=3) from None
    if configuration.settings.output == "json":
        console.write_json(
            {
                "directory": directory,
                "events": report.events,
                "executions": report.executions,
                "playbooks": report.playbooks,
                "rows": report.rows,
            }
        )
        return
    added = f"{pluralize(report.events, 'new event')} of {pluralize(report.executions, 'execution')}"
    console.write_text(f"{directory}: {added}, {pluralize(report.rows, 'row')}\n")


@store.command()
@options.store_options
def views(**store_flags: str | None) -> None:
    """Show executions and events as tables to those who ask with SQL.

    In PostgreSQL it makes them, as views in a schema beside the store. For a file it prints a script for
    sqlite3, which opens the store to be read.
    """
    from noetl.home import home_of, store_url
    from noetl.model.store_url import is_database_url
    from noetl.stores import make_database_views
    from noetl.stores.table_views import VIEW_NAMES, sqlite_views

    configuration = options.read_configuration(**store_flags)
    url, output = store_url(configuration), configuration.settings.output
    document = {"store": without_password(url), "views": [*VIEW_NAMES]}
    if is_database_url(url):
        schema = asyncio.run(make_database_views(url))
        if output == "json":
            console.write_json({**document, "schema": schema, "script": None})
        else:
            console.write_text(
                f"{schema} has {pluralize(len(VIEW_NAMES), 'view')}: {', '.join(VIEW_NAMES)}\n"
            )
        return
    home = home_of(configuration)
    if not home.exists:
        hint = "`noetl run FILE` makes one; --home or --store names another place"
        raise CommandFailure("no-executions", f"there are no executions here yet ({url})", hint=hint)
    script = sqlite_views(str(home.store.absolute()))
    if output == "json":
        console.write_json({**document, "schema": None, "script": script})
    else:
        console.write_text(script)


@store.command()
@click.argument("source", type=options.TextArgument(), metavar="FROM")
@click.argument("target", type=options.TextArgument(), metavar="TO")
@click.option(
    "--home",
    type=options.FileName(),
    metavar="DIR",
    help="The folder with keys and locks of a store in a database.  [default: the nearest .noetl]",
)
@options.output
def copy(source: str, target: str, **flags: str | None) -> None:
    """Copy a store into another one, and what is not there yet when it is called again.

    FROM and TO are URLs: sqlite:///path.db, postgresql://HOST/DATABASE. Nobody may use them meanwhile.
    """
    from noetl.cli.store_pair import (
        copy_logs,
        folders_beside,
        hints_for_files,
        open_to_copy,
        store_address_of,
    )
    from noetl.engine.archive.store_copy import CopyReport, copy_store

    configurations = [options.read_configuration(**flags, store=url) for url in (source, target)]
    settings = configurations[0].settings
    first, second = map(store_address_of, configurations, (source, target))
    if first.identity == second.identity:
        raise CommandFailure("argument", f"FROM and TO are the same store: {second.label}")
    shows_progress = settings.output == "text" and sys.stderr is not None and sys.stderr.isatty()

    async def work() -> CopyReport:
        async with open_to_copy(first, second) as stores:
            listener = _show_progress if shows_progress else lambda *_: None
            report = await copy_store(*stores, first.label, listener)
            report.logs = await copy_logs(configurations[1], first, second, stores[1])
            return report

    report = asyncio.run(work())
    folders = [str(folder) for folder, _ in folders_beside(first, second)]
    if settings.output == "json":
        counts = msgspec.to_builtins(report)
        console.write_json({"from": first.label, "to": second.label, **counts, "not_copied": folders})
        return
    added = f"{pluralize(report.events, 'new event')} of {pluralize(report.executions, 'execution')}"
    console.write_text(f"{console.visible(second.label)}: {added}, {report.skipped:,} already there\n")
    if report.credentials:
        console.say(
            f"credentials are sealed as they were: TO needs the same key ({first.homes[0].key}, or NOETL_KEY)"
        )
    for hint in hints_for_files(first, second):
        console.say(console.visible(hint))


def _show_progress(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{done:,} of {pluralize(total, 'execution')}{end}")
    sys.stderr.flush()


@store.command()
@options.store_options
def migrate(**store_flags: str | None) -> None:
    """Bring the store to the form that this release uses.

    Makes one if there is none. Every command does the same when it opens a store in a file; in a database
    this one alone, since other servers may use it.
    """
    configuration = options.read_configuration(**store_flags)
    url, before, after = _migrate(configuration)
    url = without_password(url)
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
    from noetl.model.store_url import is_database_url
    from noetl.stores import migrate_database, open_store, store_file_of
    from noetl.stores.sqlite.connection import SCHEMA_VERSION, file_schema_version

    url = store_url(configuration)
    if is_database_url(url):
        return url, *asyncio.run(migrate_database(url))
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
@click.option(
    "--with-unknown",
    is_flag=True,
    help="Also drop results of executions that this store does not know: nobody else keeps any there.",
)
@options.yes
@options.store_options
def prune(
    *, days: int | None, dry_run: bool, with_unknown: bool, yes: bool, **store_flags: str | None
) -> None:
    """Delete executions that are older than what is kept, and results that nothing names.

    With their results and logs. What has not ended, or is owned by a process, stays, and so does a result
    that was written within a day. Asks first on a terminal; a script is not asked.
    """
    from noetl.cli.command.executions.prune import prune_executions as prune_store
    from noetl.engine.history.orphans import Orphans, OrphanSearch
    from noetl.stores.ownership import owners_in
    from noetl.stores.results.named_results import NamedResults

    configuration = options.read_configuration(**store_flags)
    before = None if days is None else max(0, now_micros() - days * DAY)

    async def drop_orphans(home: Home, store: Store, results: NamedResults) -> Orphans:
        # The folder of the home belongs to it alone; what settings name may belong to others, too.
        own = frozenset() if configuration.settings.result_store else frozenset({""})
        exclusive = frozenset(results.stores) if with_unknown else own
        now = now_micros() / 1_000_000
        search = OrphanSearch(store, owners_in(home), now, dry=dry_run, exclusive=exclusive)
        return await search.drop(results.stores)

    prune_store(configuration, before=before, dry=dry_run, yes=yes, drop_orphans=drop_orphans)

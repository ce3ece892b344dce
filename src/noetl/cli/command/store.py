"""`noetl store`."""

import click

from noetl.cli import console
from noetl.cli.command.executions import execution_options
from noetl.cli.problem_text import pluralize
from noetl.ports.store import Store
from noetl.stores.home_folder import Home


@click.group()
def store() -> None:
    """Check and tidy the store of executions."""


@store.command()
@click.option(
    "--rebuild", is_flag=True, help="First make everything again that follows from the events alone."
)
@execution_options.store_options
def check(*, rebuild: bool, **place: str | None) -> int:
    """Check the store, and fold every execution in it again.

    Exits with 1 if something is wrong.
    """
    from noetl.cli.store_access import with_store
    from noetl.engine.history.store_check import StoreReport, check_store

    configuration = execution_options.read_configuration(**place)

    async def work(_home: Home, store: Store) -> StoreReport:
        return await check_store(store, configuration.settings.allow_kinds, rebuild=rebuild)

    found = with_store(configuration, work, writing=rebuild)
    if configuration.settings.output == "json":
        problems = [
            {"execution_id": one.execution_id or None, "message": one.message} for one in found.problems
        ]
        console.write_json({"ok": not problems, "executions": found.executions, "problems": problems})
    else:
        for one in found.problems:
            console.write_text(f"{one.execution_id or 'store'}: {console.visible(one.message)}\n")
        summary = f"{pluralize(found.executions, 'execution')}, {pluralize(len(found.problems), 'problem')}"
        console.write_text(summary + "\n")
    return 1 if found.problems else 0


@store.command()
@execution_options.store_options
def migrate(**place: str | None) -> None:
    """Bring the store to the form that this release uses.

    Makes one if there is none. Every command does the same when it opens the store.
    """
    from noetl.cli.upkeep import migrate_store

    configuration = execution_options.read_configuration(**place)
    done = migrate_store(configuration)
    if configuration.settings.output == "json":
        console.write_json({"store": done.url, "from": done.before, "version": done.after})
    elif done.before == done.after:
        console.write_text(f"{console.visible(done.url)} has version {done.after}: nothing to do\n")
    else:
        was = f"from version {done.before}" if done.before else "new"
        console.write_text(f"{console.visible(done.url)} has version {done.after} now ({was})\n")


@store.command()
@click.option(
    "--days", type=click.IntRange(1), metavar="N", help="Keep so many days.  [default: `keep_days`]"
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@execution_options.store_options
def prune(*, days: int | None, dry_run: bool, **place: str | None) -> None:
    """Delete executions that are older than what is kept.

    With their results and logs. What has not ended, or is owned by a process, stays.
    """
    from noetl.cli.pruning import prune_executions as prune_store
    from noetl.cli.timestamps import now_micros

    configuration = execution_options.read_configuration(**place)
    before = None if days is None else max(0, now_micros() - days * 86_400_000_000)
    prune_store(configuration, before=before, dry=dry_run)

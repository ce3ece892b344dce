"""`noetl executions prune`, and what it shares with `noetl store prune`."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import DAY, local_time, parse_time, pluralize
from noetl.cli.store_access import has_store, with_store
from noetl.engine.history.orphans import Orphans
from noetl.engine.history.retention import DroppedBodies, delete_execution, drop_expired, ended_before
from noetl.home import result_store_of
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.store import ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.results.named_results import NamedResults

DropOrphans: TypeAlias = Callable[[Home, Store, NamedResults], Awaitable[Orphans]]


@click.command("prune")
@click.option(
    "--before",
    metavar="TIME",
    help="Those that ended before then: 12h, 30d, or a time.  [default: `keep_days` days ago]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@options.yes
@options.store_options
def command(*, before: str | None, dry_run: bool, yes: bool, **store_flags: str | None) -> None:
    """Delete executions that ended long ago.

    With their results and logs. What has not ended, or is owned by a process, stays. Asks first on a
    terminal; a script is not asked.
    """
    configuration = options.read_configuration(**store_flags)
    moment = parse_time(before, "--before") if before is not None else None
    prune_executions(configuration, before=moment, dry=dry_run, yes=yes)


def prune_executions(
    configuration: Configuration,
    *,
    before: int | None,
    dry: bool,
    yes: bool,
    drop_orphans: DropOrphans | None = None,
) -> None:
    """Deletes what ended before this time, or before as many days ago as are set, and says what.

    `drop_orphans` is what else is done, after that.
    Unless `yes` says that it is wanted, a person at a terminal is asked. Raises CommandFailure if it is not.
    """
    moment = _retention_limit(configuration) if before is None else before
    if not (dry or yes) and console.can_ask(configuration.settings.output):
        _confirm(configuration, moment)

    async def work(home: Home, store: Store) -> tuple[list[ExecutionRecord], DroppedBodies, Orphans]:
        results = result_store_of(configuration, home, store)
        try:
            pruned, dropped = [record async for record in ended_before(store, moment)], DroppedBodies()
            if not dry:
                pruned = [each for each in pruned if await delete_execution(home, store, results, each)]
                dropped, _ = await drop_expired(home, store, results, now_micros())
            orphans = await drop_orphans(home, store, results) if drop_orphans else Orphans()
            if not dry:
                await store.reclaim()
            return pruned, dropped, orphans
        finally:
            await results.close()

    pruned, expired, orphans = list[ExecutionRecord](), DroppedBodies(), Orphans()
    if has_store(configuration):
        pruned, expired, orphans = with_store(configuration, work, writing=not dry)
    if configuration.settings.output == "json":
        ids = [record.execution_id for record in pruned]
        dropped = {"bodies": expired.bodies, "bytes": expired.bytes, "unreachable": expired.unreachable}
        document = {"before": iso_time(moment), "dry_run": dry, "executions": ids, "expired": dropped}
        if drop_orphans:
            document["orphans"] = msgspec.to_builtins(orphans)
        console.write_json(document)
        return
    if dry:
        console.write_text(
            "".join(f"{execution.execution_id}  {console.visible(execution.path)}\n" for execution in pruned)
        )
    verb = "would be deleted" if dry else "deleted"
    console.say(f"{verb}: {pluralize(len(pruned), 'execution')} that ended before {local_time(moment)}")
    if expired.bodies:
        results = f"{pluralize(expired.bodies, 'result')} of {expired.bytes:,} bytes"
        console.say(f"dropped: {results} whose `ttl` is over")
    if expired.unreachable:
        left = pluralize(expired.unreachable, "result")
        console.say(f"left: {left} in stores that `result_stores` does not name")
    if orphans.bodies:
        results = f"{pluralize(orphans.bodies, 'result')} of {orphans.bytes:,} bytes"
        console.say(f"{'would be dropped' if dry else 'dropped'}: {results} that nothing names")
    if orphans.unknown:
        left = pluralize(orphans.unknown, "result")
        console.say(f"left: {left} of executions that are not in this store (--with-unknown drops them, too)")


def _confirm(configuration: Configuration, moment: int) -> None:
    async def work(_: Home, store: Store) -> int:
        return len([record async for record in ended_before(store, moment)])

    count = with_store(configuration, work) if has_store(configuration) else 0
    if count:
        question = f"Delete {pluralize(count, 'execution')} that ended before {iso_time(moment)}?"
        if not click.confirm(question, err=True):
            raise CommandFailure("declined", "nothing was deleted", exit_code=1)


def _retention_limit(configuration: Configuration) -> int:
    """The time before which executions are not kept. Raises CommandFailure if they are kept for ever."""
    days = configuration.settings.keep_days
    if not days:
        hint = "say which with --before; `keep_days` is 0"
        raise CommandFailure("argument", "executions are kept for ever here", hint=hint)
    return max(0, now_micros() - days * DAY)

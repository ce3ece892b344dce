"""Deleting what is older than anybody wants to keep."""

from noetl.cli import stream
from noetl.cli.failure import Failure
from noetl.cli.problems import counted
from noetl.cli.store import consult, has_store
from noetl.cli.when import iso, now
from noetl.ports.store import ExecutionRecord, Store
from noetl.server.retention import delete, ended_before
from noetl.settings import Configuration
from noetl.stores.home import Home

_DAY = 86_400_000_000


def prune(configuration: Configuration, *, before: int | None, dry: bool) -> None:
    """Deletes what ended before this time, or before as many days ago as are set, and says what."""
    moment = kept_since(configuration) if before is None else before

    async def work(home: Home, store: Store) -> list[ExecutionRecord]:
        found = [record async for record in ended_before(store, moment)]
        return found if dry else [record for record in found if await delete(home, store, record)]

    pruned = consult(configuration, work) if has_store(configuration) else []
    if configuration.settings.output == "json":
        ids = [record.execution_id for record in pruned]
        stream.write_json({"before": iso(moment), "dry_run": dry, "executions": ids})
        return
    if dry:
        stream.write_text("".join(f"{one.execution_id}  {stream.visible(one.path)}\n" for one in pruned))
    verb = "would be deleted" if dry else "deleted"
    stream.say(f"{verb}: {counted(len(pruned), 'execution')} that ended before {iso(moment)}")


def kept_since(configuration: Configuration) -> int:
    """The time before which executions are not kept. Raises Failure if they are kept for ever."""
    days = configuration.settings.keep_days
    if not days:
        hint = "say which with --before; `keep_days` is 0"
        raise Failure("argument", "executions are kept for ever here", hint=hint)
    return max(0, now() - days * _DAY)

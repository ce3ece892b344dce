"""`noetl executions waits`."""

import shlex
from collections.abc import Iterator

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.format import pluralize
from noetl.cli.options import current_user
from noetl.cli.store_access import has_store, with_store
from noetl.engine.history.lookup import find_execution
from noetl.engine.history.wait_reader import Answerer, WaitReader
from noetl.ports.page_api import WaitItem
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home


@click.command("waits")
@click.argument("name", required=False, default="", metavar="[ID]")
@options.tools
@options.store_or_server_options
def command(*, name: str, **store_flags: str | None) -> None:
    """List what waits for a person, the oldest first: all of it, or that of one execution.

    Each has the command that answers it.
    """
    configuration = options.read_configuration(**store_flags)
    waits = _read_waits(configuration, name)
    if configuration.settings.output == "json":
        console.write_json({"waits": [msgspec.to_builtins(wait) for wait in waits]})
        return
    console.say(pluralize(len(waits), "wait") if waits else "nothing waits")
    console.write_text("".join(f"{line}\n" for wait in waits for line in _lines(wait)))


def _read_waits(configuration: Configuration, name: str) -> list[WaitItem]:
    if options.asks_server(configuration):
        from noetl.cli.server_executions import waits_remote

        return waits_remote(configuration, name)

    async def read(_home: Home, store: Store) -> list[WaitItem]:
        execution_id = (await find_execution(store, name)).execution_id if name else ""
        asker = Answerer(current_user(), is_operator=True, is_admin=True)
        return await WaitReader(store, configuration.settings.allow_kinds).read(asker, execution_id)

    return with_store(configuration, read) if name or has_store(configuration) else []


def _lines(wait: WaitItem) -> Iterator[str]:
    title = console.visible(wait.title) or _untitled(wait)
    yield f"{title}  ({console.visible(wait.path)}, step {wait.step}, since {wait.since})"
    if wait.description:
        yield f"  {console.visible(wait.description)}"
    if wait.assignee:
        yield f"  for {console.visible(', '.join(wait.assignee))}"
    if wait.until:
        yield f"  until {wait.until}"
    if wait.schema is not None:
        yield f"  fits {console.visible(msgspec.json.encode(wait.schema).decode())}"
    for rule in wait.rules:
        holds = "was not asked" if rule.holds is None else "holds" if rule.holds else "does not hold"
        yield f"  line {rule.line}: {console.visible(rule.text)} {console.visible(rule.error) or holds}"
        for read in rule.reads:
            value = "is not there" if read.missing else f"= {msgspec.json.encode(read.value).decode()}"
            yield f"    {console.visible(read.path)} {console.visible(value)}"
    signal = shlex.quote(wait.signal) if wait.signal else "SIGNAL"
    named = f" --wait {shlex.quote(wait.wait)}" if wait.kind == "task" else ""
    yield f"  noetl executions signal {wait.execution_id} {signal} PAYLOAD{named}"


def _untitled(wait: WaitItem) -> str:
    if wait.kind == "task":
        return f"waits for the signal `{console.visible(wait.signal)}`"
    return f"a gate waits for the signal `{console.visible(wait.signal)}`" if wait.signal else "a gate waits"

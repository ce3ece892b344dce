"""`noetl executions signal`."""

from functools import partial

import click

from noetl.cli import options
from noetl.cli.arguments import parse_value
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.command_failure import CommandFailure
from noetl.cli.options import current_user
from noetl.dsl.document.shape_check import did_you_mean
from noetl.dsl.document.signals import signal_names
from noetl.engine.history.read import read_plan
from noetl.kernel.net.commands import Signal
from noetl.model.normalisation import NotJson, normalise
from noetl.ports.store import ExecutionRecord, Store


@click.command("signal")
@options.execution
@click.argument("signal", type=options.TextArgument(), metavar="SIGNAL")
@click.argument("payload", required=False)
@click.option("--wait", default="", metavar="TASK_RUN", help="The task run that gets it.")
@options.tools
@options.store_or_server_options
def command(*, name: str, signal: str, payload: str | None, wait: str, **store_flags: str | None) -> int:
    """Send a signal to an execution.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL and whose
    `schema` it fits gets it, unless --wait names one (`noetl executions waits` lists them); sent before any
    waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    try:
        value = True if payload is None else normalise(parse_value(payload))
    except NotJson as error:
        raise CommandFailure("argument", f"PAYLOAD: {error}") from None
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration,
            name,
            f"signal {signal} given",
            lambda client, target: client.signal(target, signal, value, wait=wait),
        )
    doubts = partial(_doubts, signal, configuration.settings.allow_kinds)
    sent = Signal(signal, value, current_user(), wait, by_admin=True)
    return send_command(configuration, name, sent, f"signal {signal} given", doubts)


async def _doubts(
    signal: str, allow_kinds: tuple[str, ...], store: Store, execution: ExecutionRecord
) -> list[str]:
    """Whether anything in the playbook takes notice of the signal, and what is waited for instead."""
    names = signal_names((await read_plan(store, execution, allow_kinds)).playbook)
    if names is None or signal in names:
        return []
    others = f"only for {', '.join(f'`{name}`' for name in sorted(names))}" if names else "nor for any other"
    warning = f"nothing in `{execution.path}` waits for the signal `{signal}`, {others}"
    near = did_you_mean(signal, names)
    return [f"{warning}; {near}" if near else warning]

"""`noetl executions signal`."""

from functools import partial

import click

from noetl.cli import options
from noetl.cli.arguments import parse_value
from noetl.cli.command.executions.execution_filter import operate_on_matching, where_option
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
@click.argument("words", metavar="[ID] SIGNAL [PAYLOAD]", nargs=-1)
@where_option
@options.yes
@click.option("--wait", default="", metavar="TASK_RUN", help="The task run that gets it.")
@options.tools
@options.store_or_server_options
def command(
    *, words: tuple[str, ...], where: str | None, yes: bool, wait: str, **store_flags: str | None
) -> int:
    """Send a signal to an execution; or, with --where, to all that match.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL and whose
    `schema` it fits gets it, unless --wait names one (`noetl executions waits` lists them); sent before any
    waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    name, signal, payload = _parse_words(words, where, wait)
    try:
        value = True if payload is None else normalise(parse_value(payload))
    except NotJson as error:
        raise CommandFailure("argument", f"PAYLOAD: {error}") from None
    configuration = options.read_configuration(**store_flags)
    sent = Signal(signal, value, current_user(), wait, by_admin=True)
    if where is not None:
        return operate_on_matching(
            configuration,
            "signal",
            where,
            ("running", "paused"),
            lambda control, execution_id: control.send(execution_id, sent),
            yes=yes,
            signal=signal,
            payload=value,
        )
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration,
            name,
            f"signal {signal} given",
            lambda client, target: client.signal(target, signal, value, wait=wait),
        )
    doubts = partial(_doubts, signal, configuration.settings.allow_kinds)
    return send_command(configuration, name, sent, f"signal {signal} given", doubts)


def _parse_words(words: tuple[str, ...], where: str | None, wait: str) -> tuple[str, str, str | None]:
    """ID, unless there is a `--where`, SIGNAL and PAYLOAD. Raises UsageError."""
    if where is not None:
        if wait:
            raise click.UsageError("--wait is for one execution, and not for those of --where")
        words = ("", *words)
    if len(words) not in (2, 3):
        wanted = "ID SIGNAL [PAYLOAD]" if where is None else "SIGNAL [PAYLOAD], without an ID"
        raise click.UsageError(f"it takes {wanted}")
    may_be_empty = {"ID": where is not None, "SIGNAL": False, "PAYLOAD": True}
    for word, (name, empty) in zip(words, may_be_empty.items(), strict=False):
        try:
            options.TextArgument(empty=empty).convert(word, None, None)
        except click.BadParameter as error:
            raise click.BadParameter(error.message, param_hint=f"'{name}'") from None
    return words[0], words[1], words[2] if len(words) == 3 else None


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

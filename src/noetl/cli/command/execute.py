"""`noetl execute`."""

from typing import TYPE_CHECKING

import click

from noetl.cli import console, options

if TYPE_CHECKING:
    from noetl.ports.http_api import StartedExecution


@click.command()
@click.argument("name", type=options.TextArgument(), metavar="PATH[@VERSION]")
@options.sets
@click.option("--payload", metavar="JSON|@FILE", help="The workload: a JSON mapping, @FILE, or @- for stdin.")
@click.option("--ctx", metavar="JSON|@FILE", help="The first ctx: a JSON mapping, @FILE, or @- for stdin.")
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label the execution. May be repeated."
)
@click.option(
    "--idempotency-key",
    type=options.TextArgument(),
    metavar="KEY",
    help="Start it once: a second request with this key gives the first one's execution.",
)
@click.option("--timeout", metavar="SECONDS", help="How long the execution may take: 90, 5m, 1h30m.")
@click.option(
    "--priority",
    type=click.IntRange(-100, 100),
    default=0,
    metavar="N",
    help="Its runs go to workers before those with a lower one: -100 to 100.  [default: 0]",
)
@click.option("--wait", is_flag=True, help="Wait for its end, and print the result.")
@options.server_options
def execute(
    *,
    name: str,
    sets: tuple[str, ...],
    payload: str | None,
    ctx: str | None,
    labels: tuple[str, ...],
    idempotency_key: str | None,
    timeout: str | None,
    priority: int,
    wait: bool,
    **flags: str | None,
) -> int:
    """Run a registered playbook on a server.

    PATH is its `metadata.path`, VERSION a number of the catalog. With --wait it exits with 1 if the execution
    failed or was cancelled; Ctrl-C ends the waiting, not the execution.
    """
    from noetl.cli import arguments
    from noetl.cli.command.catalog import split_playbook_name
    from noetl.cli.report.follow_up import FollowUp
    from noetl.cli.server_connection import ask_server, find_server
    from noetl.cli.server_executions import print_ended, read_at_end
    from noetl.ports.http_api import StartExecution

    configuration = options.read_configuration(**flags)
    path, version = split_playbook_name(name)
    values, first_ctx = (
        {} if text is None else arguments.parse_mapping(arguments.read_argument(text, option), option)
        for option, text in (("--payload", payload), ("--ctx", ctx))
    )
    request = StartExecution(
        path=path,
        version=version or None,
        workload=arguments.apply_sets(values, sets),
        ctx=first_ctx,
        labels=arguments.parse_labels(labels),
        idempotency_key=idempotency_key or "",
        timeout=None if timeout is None else arguments.parse_seconds(timeout, "--timeout"),
        priority=priority,
    )
    started: StartedExecution = ask_server(configuration, lambda client: client.start(request))
    follow_up = FollowUp(configuration, find_server(configuration).url)
    show = follow_up.executions_command("show", started.execution_id)
    if not wait:
        _print_started(started, show, as_json=configuration.settings.output == "json")
        return 0

    try:
        console.say(f"{started.execution_id} {started.status}; waiting for its end")
        end = ask_server(configuration, lambda client: read_at_end(client, started.execution_id))
    except KeyboardInterrupt:
        console.say(f"no longer waiting; {started.execution_id} goes on: {show}")
        return 1
    return print_ended(configuration, end)


def _print_started(started: "StartedExecution", show: str, *, as_json: bool) -> None:
    if as_json:
        console.write_json({"execution_id": started.execution_id, "status": started.status})
    else:
        console.write_text(f"{started.execution_id}\n")
        console.say(f"{started.status}; how it is: {show}")

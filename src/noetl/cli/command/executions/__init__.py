"""`noetl executions`. A verb is a module of this package and its line here."""

import click

from noetl.cli.command import LazyGroup

VERBS = {
    "Look": {
        "list": "List executions, the newest first.",
        "show": "Show one execution: how it is, and why.",
        "events": "Print the events of an execution.",
        "logs": "Print what the tasks of an execution wrote.",
        "watch": "Follow an execution to its end.",
        "waits": "List what waits for a person.",
        "result": "Print the result of an execution or a step, whole.",
        "timeline": "Show the runs of an execution in time.",
        "explain": "Say why a step ran, or did not.",
        "eval": "Evaluate an expression on an execution as it was.",
        "diff": "Compare two executions.",
        "replay": "Show the state of an execution as it was.",
        "verify": "Decide an execution again and compare.",
    },
    "Act": {
        "cancel": "Stop an execution for good.",
        "pause": "Hold an execution.",
        "resume": "Go on with one that was paused or interrupted.",
        "signal": "Send a signal to an execution.",
        "retry": "Go on with a failed execution at what failed.",
        "redrive": "Run the failed iterations of an ended loop again.",
        "complete": "End a stuck or failed step as done, with a result.",
        "skip": "End a stuck or failed step as done, without one.",
        "fork": "Run a copy of an execution from one of its events on.",
        "prune": "Delete executions that ended long ago.",
    },
}


@click.group(
    cls=LazyGroup,
    sections=VERBS,
    package="noetl.cli.command.executions",
    attribute="command",
    subcommand_metavar="COMMAND …",
)
def executions() -> None:
    """See what executions did, and why, and steer them.

    ID is the id of an execution, the beginning of one, or `latest`.
    """

"""`noetl executions result`."""

import sys
from functools import partial
from typing import Any

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.file_access import read_pieces, write_file, write_pieces
from noetl.cli.store_access import with_store
from noetl.engine.engine import LARGEST_TABLE
from noetl.engine.history.read import History, read_history
from noetl.events.bodies import (
    LoopDone,
    StepCompletedByHand,
    StepDone,
    StepFailed,
    StepScheduled,
    StepSkipped,
)
from noetl.events.identifiers import run_id
from noetl.home import result_store_of
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.run_fold import EndByHand, RunEnd
from noetl.model.reference import is_object_reference, is_table_reference
from noetl.model.secret import hide_secrets
from noetl.ports.store import Store
from noetl.stores.home_folder import Home
from noetl.stores.results.result_reader import read_result


@click.command("result")
@options.execution
@click.argument("step", required=False)
@options.out
@options.tools
@options.store_or_server_options
def command(*, name: str, step: str | None, out: str | None, **store_flags: str | None) -> None:
    """Print the result of an execution or a step, whole.

    STEP is the name of a step: the result of its last run. Text is printed as it is, everything else
    as JSON. A stored object is printed as its reference, and written to a file as it is.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import result_remote

        result_remote(configuration, name, step, out)
        return

    async def work(home: Home, store: Store) -> tuple[str, Any, int | None]:
        history = await read_history(store, name, configuration.settings.allow_kinds)
        execution_id = history.record.execution_id
        result = _execution_result(history) if step is None else _step_result(history, step)
        results = result_store_of(configuration, home, store)
        if out is not None and (is_object_reference(result) or is_table_reference(result)):
            async with results.local(result["key"]) as path:
                write_pieces(out, read_pieces(path))
                return execution_id, result, path.stat().st_size
        get = partial(read_result, results)
        resolved = await resolve_references(result, get, largest_table=LARGEST_TABLE)
        return execution_id, hide_secrets(resolved), None

    execution_id, result, written = with_store(configuration, work)
    data = b""
    if written is None:
        data = (
            result.encode("utf-8", "backslashreplace")
            if isinstance(result, str)
            else console.json_bytes(result)
        )
        written = len(data)
        if out is not None:
            write_file(out, data)
    if configuration.settings.output == "json":
        document = {"result": result} if out is None else {"file": out, "bytes": written}
        console.write_json({"execution_id": execution_id, "step": step, **document})
    elif out is None:
        _print(result, data)
    else:
        console.say(f"wrote {console.visible(out)}")


def _print(result: Any, data: bytes) -> None:
    if isinstance(result, str):
        # Programs get the text as it is; a terminal must not be steered by it.
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        lines = "\n".join(map(console.visible, result.split("\n")))
        data = lines.encode("utf-8", "backslashreplace") if on_terminal else data
        data += b"\n"
    console.write_bytes(data)


def _execution_result(history: History) -> Any:
    state = history.state
    if not state.over:
        hint = "name a step that has ended, or wait: `noetl executions watch`"
        raise CommandFailure(
            "no-result", f"{state.execution_id} has no result yet: it is {state.status}", hint=hint
        )
    return state.result


def _step_result(history: History, step: str) -> Any:
    if step not in history.playbook.steps:
        hint = f"its steps are {', '.join(history.playbook.steps)}"
        raise CommandFailure("no-result", f"the playbook has no step `{step}`", hint=hint)
    runs: set[str] = set()
    last_end: RunEnd | EndByHand | None = None
    for event in history.events:
        match event.body:
            case StepScheduled(step=name) if name == step:
                runs.add(run_id(event.seq))
            case (StepDone() | LoopDone() | StepFailed() | StepCompletedByHand() | StepSkipped()) as body if (
                body.run in runs
            ):
                last_end = body
            case _:
                pass
    if last_end is None:
        raise CommandFailure("no-result", f"no run of step `{step}` has ended")
    if isinstance(last_end, StepFailed):
        raise CommandFailure("no-result", f"the last run of step `{step}` failed: {last_end.error.message}")
    if isinstance(last_end, StepSkipped):
        raise CommandFailure("no-result", f"the last run of step `{step}` was skipped")
    return last_end.result

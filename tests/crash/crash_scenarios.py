"""What people do with the playbooks, in every life of the process that runs them."""

from noetl.events.bodies import (
    ExecutionPaused,
    ExecutionRetried,
    RunSuspended,
    SignalReceived,
    TaskProcessed,
    TaskStarted,
)
from noetl.kernel.net.commands import Cancel, Pause, Resume, Signal
from noetl.testing.crash.process_life import Drive, ProcessLife, Scenario
from tests.crash import child_playbooks, step_playbooks, stored_playbooks, wait_playbooks

GO = Signal("go", {"by": "somebody"})


async def signal_by_letter(life: ProcessLife) -> None:
    """Another process sends the signal, once the run waits for it."""
    execution_id = await life.begin()
    await life.wait_for(execution_id, RunSuspended)
    await life.send_once(execution_id, GO)
    await life.wait_for_end(execution_id)


async def signal_early(life: ProcessLife) -> None:
    """The signal comes before anybody waits for it."""
    execution_id = await life.begin()
    if not await life.has_event(execution_id, SignalReceived):
        await life.local.submit(execution_id, GO)
    await life.wait_for_end(execution_id)


async def signal_at_the_gate(life: ProcessLife) -> None:
    execution_id = await life.begin()
    await life.wait_for(execution_id, TaskProcessed)
    if not await life.has_event(execution_id, SignalReceived):
        await life.local.submit(execution_id, GO)
    await life.wait_for_end(execution_id)


async def pause_in_between(life: ProcessLife) -> None:
    """It is paused and unpaused while it runs; whoever resumes it unpauses it, too."""
    execution_id = await life.begin()
    if not await life.has_event(execution_id, ExecutionPaused):
        await life.wait_for(execution_id, TaskStarted)
        await life.local.submit(execution_id, Pause())
        await life.wait_for(execution_id, ExecutionPaused)
        await life.local.submit(execution_id, Resume())
    await life.wait_for_end(execution_id)


async def cancel_the_child_too(life: ProcessLife) -> None:
    """The parent is cancelled from outside, while its child waits."""
    execution_id = await life.begin()
    await life.wait_for(execution_id, RunSuspended)
    (child,) = await life.children(execution_id)
    await life.wait_for(child.execution_id, RunSuspended)
    await life.send_once(execution_id, Cancel())
    await life.wait_for_end(execution_id)


async def ask_again_with_a_key(life: ProcessLife) -> None:
    """Nobody resumes it: the same request is made again."""
    await life.wait_for_end(await life.local.start(life.source, idempotency_key="only once"))


async def mend_and_retry(life: ProcessLife) -> None:
    execution_id = await life.begin()
    await life.wait_for_end(execution_id)
    if not await life.has_event(execution_id, ExecutionRetried):
        (life.files.folder / "mended").touch()
        await life.wait_for_end(await life.local.retry(execution_id))


def fork_at(kind: type) -> Drive:
    """A copy of the history up to the first such event goes on with another ctx."""

    async def drive(life: ProcessLife) -> None:
        execution_id = await life.begin()
        await life.wait_for_end(execution_id)
        if len(await life.roots()) > 1:
            await life.wait_for_end(await life.begin(1))
            return
        at = await life.first_seq_of(execution_id, kind)
        forked = await life.local.fork(execution_id, at=at, ctx={"first": "forked"}, workload={"n": 5})
        await life.wait_for_end(forked)

    return drive


def full_document(name: str, text: str) -> str:
    return (
        f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {name}}}\n{text.lstrip()}"
    )


def _scenarios() -> dict[str, Scenario]:
    leaf, named = full_document("leaf", child_playbooks.LEAF), full_document("named", child_playbooks.NAMED)
    files = {"leaf.yaml": leaf, "named.yaml": named}
    echo = {"echo.yaml": full_document("echo", stored_playbooks.ECHO)}
    scenarios = [
        Scenario(name="chain", text=step_playbooks.CHAIN),
        Scenario(name="pages", text=step_playbooks.PAGES),
        Scenario(name="retry", text=step_playbooks.RETRY),
        Scenario(name="sequential", text=step_playbooks.SEQUENTIAL),
        Scenario(name="parallel", text=step_playbooks.PARALLEL),
        Scenario(name="best_effort", text=step_playbooks.BEST_EFFORT),
        Scenario(name="joins", text=step_playbooks.JOINS),
        Scenario(name="admission", text=step_playbooks.ADMISSION),
        Scenario(name="children", text=child_playbooks.CHILDREN, files=files),
        Scenario(name="child_loop", text=child_playbooks.CHILD_LOOP, files=files),
        Scenario(name="detached", text=child_playbooks.DETACHED, files=files),
        Scenario(name="wait", text=wait_playbooks.WAIT),
        Scenario(name="signal_by_letter", text=wait_playbooks.SIGNAL, drive=signal_by_letter),
        Scenario(name="signal_early", text=wait_playbooks.SIGNAL, drive=signal_early),
        Scenario(name="signal_gate", text=wait_playbooks.SIGNAL_GATE, drive=signal_at_the_gate),
        Scenario(name="deadlines", text=wait_playbooks.DEADLINES),
        Scenario(name="cancelled", text=child_playbooks.CANCELLED, drive=cancel_the_child_too),
        Scenario(name="keyed", text=step_playbooks.CHAIN, drive=ask_again_with_a_key),
        Scenario(name="slow_retry", text=wait_playbooks.SLOW_RETRY),
        Scenario(name="final", text=step_playbooks.FINAL),
        Scenario(name="mended", text=step_playbooks.MENDED, drive=mend_and_retry),
        Scenario(
            name="mended_child",
            text=child_playbooks.MENDED_CHILD,
            files={"mending.yaml": full_document("mending", child_playbooks.MENDING)},
            drive=mend_and_retry,
        ),
        Scenario(name="forked", text=step_playbooks.CHAIN, drive=fork_at(TaskProcessed)),
        Scenario(name="forked_child", text=child_playbooks.CHILD, files=files, drive=fork_at(RunSuspended)),
        Scenario(name="paused", text=wait_playbooks.PAUSED, drive=pause_in_between),
        Scenario(name="python", text=step_playbooks.PYTHON),
        Scenario(name="contained", text=step_playbooks.CONTAINED),
        Scenario(name="stored", text=stored_playbooks.STORED),
        Scenario(name="stored_child", text=stored_playbooks.STORED_CHILD, files=echo),
        Scenario(name="stored_fork", text=stored_playbooks.STORED, drive=fork_at(TaskProcessed)),
    ]
    return {
        scenario.name: Scenario(
            name=scenario.name,
            text=full_document(scenario.name, scenario.text),
            files=scenario.files,
            drive=scenario.drive,
        )
        for scenario in scenarios
    }


LONG = Scenario(name="long", text=full_document("long", step_playbooks.LONG))
LARGE = Scenario(name="large", text=full_document("large", stored_playbooks.LARGE))
SCENARIOS = _scenarios()

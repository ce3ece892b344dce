"""What is laid over a playbook that was made at random: children nobody waits for, loops that workers share.

It has chances of its own, so that a seed has the playbook that it would have without.
"""

from random import Random

from msgspec.structs import replace

from noetl.testing.simulator.playbook_fragments import CHILD
from noetl.testing.simulator.playbook_pieces import SimulatedPlaybook, StepPiece, TaskPiece

DETACHED = f"kind: playbook, path: {CHILD}"
# Its result is the id of an execution, which is another one each time: nobody is to read it.
UNREAD = "spec: {wait: false, policy: {rules: [{else: {then: {do: continue, set_prev: 0}}}]}}"
DETACHED_TASK = TaskPiece("off", DETACHED, UNREAD)
EXEC = "exec: distributed"
DISTRIBUTED_PLAYBOOKS = 0.5
DETACHED_PLAYBOOKS = 0.2


def overlay_playbook(random: Random, document: SimulatedPlaybook) -> SimulatedPlaybook:
    """The same playbook, with loops of it distributed, and tasks that start children before others."""
    distributed = random.random() < DISTRIBUTED_PLAYBOOKS
    detached = random.random() < DETACHED_PLAYBOOKS
    steps = []
    for step in document.steps:
        loop, tasks = step.loop, step.tasks
        if distributed and loop and random.random() < 0.8:
            loop = _distributed(loop)
        if detached and tasks and step.name != "last" and random.random() < 0.5:
            tasks = (DETACHED_TASK, *tasks)
        steps.append(replace(step, loop=loop, tasks=tasks))
    return replace(document, steps=tuple(steps))


def _distributed(loop: str) -> str:
    if "policy: {" in loop:
        return loop.replace("policy: {", f"policy: {{{EXEC}, ")
    policy = f"policy: {{{EXEC}}}"
    return (
        loop.replace("spec: {", f"spec: {{{policy}, ") if "spec: {" in loop else f"{loop}, spec: {{{policy}}}"
    )


def without_overlay(document: SimulatedPlaybook) -> SimulatedPlaybook:
    """The same playbook, whose loops run in one worker each: it must end the same."""
    return replace(document, steps=tuple(map(_local, document.steps)))


def _local(step: StepPiece) -> StepPiece:
    return replace(step, loop=step.loop.replace(EXEC, "exec: local"))

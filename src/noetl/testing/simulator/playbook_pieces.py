"""Playbooks in pieces, so that they can be made at random and made smaller."""

from functools import lru_cache

from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.loader import examine


class TaskPiece(Struct, frozen=True):
    """A task: `kind` are the keys that say what it does, `more` are all others."""

    label: str
    kind: str
    more: str = ""


class ArcPiece(Struct, frozen=True):
    step: str
    more: str = ""


class StepPiece(Struct, frozen=True):
    """A step; `spec`, `loop` and `writes` are what stands after these keys."""

    name: str
    spec: str = ""
    loop: str = ""
    writes: str = ""
    tasks: tuple[TaskPiece, ...] = ()
    exclusive: bool = False
    arcs: tuple[ArcPiece, ...] = ()


class SimulatedPlaybook(Struct, frozen=True):
    path: str
    executor: str
    steps: tuple[StepPiece, ...]
    keychain: str = ""

    @property
    def text(self) -> str:
        """The playbook as YAML."""
        name = self.path.rpartition("/")[2]
        lines = [
            "apiVersion: noetl.io/v2",
            "kind: Playbook",
            f"metadata: {{name: {name}, path: {self.path}}}",
            f"executor: {{kind: distributed, spec: {{{self.executor}}}}}",
            f"keychain: [{self.keychain}]",
            "workflow:",
        ]
        for step in self.steps:
            lines += _step(step)
        return "\n".join(lines) + "\n"


def _step(step: StepPiece) -> list[str]:
    lines = [f"- step: {step.name}"]
    for key, value in (("spec", step.spec), ("loop", step.loop), ("set", step.writes)):
        if value:
            lines.append(f"  {key}: {{{value}}}")
    if step.tasks:
        lines.append("  tool:")
        for task in step.tasks:
            more = f", {task.more}" if task.more else ""
            lines.append(f"  - {task.label}: {{{task.kind}{more}}}")
    if step.arcs:
        lines.append(
            f"  next:\n    spec: {{mode: {'exclusive' if step.exclusive else 'inclusive'}}}\n    arcs:"
        )
        for arc in step.arcs:
            more = f", {arc.more}" if arc.more else ""
            lines.append(f"    - {{step: {arc.step}{more}}}")
    return lines


@lru_cache(maxsize=1_000)
def playbook_of(text: str) -> Playbook | None:
    """The playbook, or None if it is not valid. Loading costs more than running, hence the cache."""
    return examine(text, "random.yaml").playbook

"""The file that an execution's playbook came from, if it still holds that playbook."""

from pathlib import Path

from msgspec import Struct

from noetl.cli.excerpt import excerpt
from noetl.cli.stream import Paint, visible
from noetl.dsl.playbook import Place, Playbook
from noetl.dsl.source import Lines
from noetl.loading import SourceUnreadable, examine, read_source


class Document(Struct, frozen=True):
    """A playbook with the text that its places point into; `name` is what people call the file."""

    name: str
    text: str
    playbook: Playbook

    def place_of(self, step: str, task: str) -> Place | None:
        """Where a task stands, or its step if there is no such task."""
        found = self.playbook.steps.get(step)
        if found is None:
            return None
        return next((one.place for one in found.tasks if one.label == task), found.place)

    def excerpt(self, place: Place, paint: Paint) -> list[str]:
        """`file:line:column`, the line, and a caret under the place."""
        lines = list(Lines(self.text))
        head = paint("place", f"{visible(self.name)}:{place.line}:{place.column}")
        if place.line > len(lines):
            return [head]
        shown, before = excerpt(lines[place.line - 1], place.column)
        return [
            head,
            f"{paint('faint', f'{place.line:>5} |')} {shown}",
            f"{paint('faint', '      |')} {' ' * before}{paint('caret', '^')}",
        ]


def document_at(file: str, playbook: Playbook) -> Document | None:
    """The document in a file, if it is the one that this playbook was made from."""
    if not file:
        return None
    try:
        _, text = read_source(Path(file))
    except SourceUnreadable:
        return None
    kinds = {task.kind for step in playbook.workflow for task in step.tasks}
    for dialect in (None, "draft"):
        loaded = examine(text, file, dialect=dialect, allow_kinds=kinds)
        if loaded.playbook is not None and loaded.playbook.hash == playbook.hash:
            return Document(file, text, loaded.playbook)
    return None

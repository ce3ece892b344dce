"""The signals that a playbook can take notice of."""

from collections.abc import Iterator

from noetl.dsl.document.playbook import Playbook
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.expr.template import Constant
from noetl.model.errors import ExpressionError
from noetl.model.json import Json


def signal_names(playbook: Playbook) -> frozenset[str] | None:
    """The signals that its tasks wait for and its expressions read; None if some are computed."""
    names: set[str | None] = set()
    for step in playbook.workflow:
        for task in step.tasks:
            if task.kind == "wait" and (signal := task.inputs.get("signal")) is not None:
                names.add(str(signal.value) if isinstance(signal, Constant) else None)
    for text in _texts(playbook.document):
        if "signals" in text and is_template(text):
            names |= _read_signals(text)
    return None if None in names else frozenset(name for name in names if name is not None)


def _read_signals(text: str) -> set[str | None]:
    try:
        paths = [use.path for use in parse(text).uses]
    except ExpressionError:  # code in another language, which is no expression
        return set()
    keys = [path[1:] if path[0] == "ctx" else path for path in paths]
    return {path[1] if len(path) > 1 else None for path in keys if path[:1] in (("signals",), ())}


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)

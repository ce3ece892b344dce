"""What `noetl tools` says: the kinds that there are, whether they run here, and one kind on a page."""

from collections.abc import Iterator, Sequence
from textwrap import indent, wrap
from typing import Any

import msgspec
from msgspec import Struct

from noetl.cli import console
from noetl.dsl.document.kind_reference import KindField, common_knobs, reference_of
from noetl.dsl.document.kinds import Kind
from noetl.loader import installed_kinds, package_of
from noetl.tools.host.extras import install_command, missing_packages
from noetl.tools.host.worker_tools import ENGINE_KINDS

_WIDTH = 100


class KindFacts(Struct, frozen=True):
    """A kind, the package that brings it, and what keeps it from running here, if anything does."""

    kind: Kind
    package: str
    missing: tuple[str, ...]

    @property
    def origin(self) -> str:
        return self.package or "noetl"

    @property
    def obstacle(self) -> str:
        """What to do before it runs here; empty if it does."""
        if self.missing:
            return install_command(self.kind.extra)
        if self.kind.implementation is None and self.kind.name not in ENGINE_KINDS:
            return "no: it can be checked only"
        return ""

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind.name,
            "summary": self.kind.summary,
            "effect": self.kind.effect,
            "from": self.origin,
            "extra": self.kind.extra or None,
            "missing": list(self.missing),
            "runs": not self.obstacle,
        }


def all_kind_facts() -> list[KindFacts]:
    """Every kind, those of this package first."""
    return [
        KindFacts(kind, package_of(kind), missing_packages(kind.extra) if kind.extra else ())
        for kind in installed_kinds()
    ]


def kind_json(facts: KindFacts) -> dict[str, Any]:
    """Everything about a kind. `knobs` stand under the task's `spec`, and so do `common_knobs`."""
    reference = reference_of(facts.kind)
    return {
        **facts.as_json(),
        "inputs": [_entry(entry) for entry in reference.inputs],
        "knobs": [_entry(entry) for entry in reference.knobs],
        "common_knobs": [_entry(entry) for entry in common_knobs()],
        "result": facts.kind.result,
        "helpers": dict(facts.kind.helpers),
        "example": facts.kind.example,
    }


def _entry(entry: KindField) -> dict[str, Any]:
    default = msgspec.json.decode(entry.default) if entry.default else None
    return {**msgspec.to_builtins(entry), "default": default}


def kind_text(facts: KindFacts) -> str:
    """The page of a kind."""
    # Packages of others wrote some of it: nothing in it shall steer the terminal.
    return "".join(f"{console.visible(line)}\n" for text in _lines(facts) for line in text.split("\n"))


def _lines(facts: KindFacts) -> Iterator[str]:
    kind, reference = facts.kind, reference_of(facts.kind)
    yield f"{kind.name}: {kind.summary}"
    yield ""
    yield f"  from       {facts.origin}"
    yield f"  effect     {kind.effect}"
    yield f"  runs here  {facts.obstacle or 'yes'}"
    yield from _section("Inputs", reference.inputs)
    yield from _section("Knobs, under `spec`", reference.knobs)
    common = ", ".join(entry.name for entry in common_knobs() if "." not in entry.name)
    yield from ("", *_wrapped(f"Knobs of every kind: {common}, policy", 0))
    if kind.result:
        yield from ("", "Result", *_wrapped(kind.result, 2))
    for name, about in kind.helpers.items():
        yield from _wrapped(f"outcome.{name}: {about}", 2)
    if kind.example:
        yield from ("", "Example", indent(kind.example.strip("\n"), "  "))


def _section(title: str, entries: Sequence[KindField]) -> Iterator[str]:
    if not entries:
        return
    yield from ("", title)
    for entry in entries:
        about = [entry.type, "required" if entry.required else ""]
        if entry.default:
            about.append(f"default {entry.default}")
        if entry.spellings:
            about.append(f"also spelt {', '.join(entry.spellings)}")
        yield f"  {entry.name}: {', '.join(filter(None, about))}"
        yield from _wrapped(entry.description, 6)


def _wrapped(text: str, by: int) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=" " * by, subsequent_indent=" " * by, break_on_hyphens=False)

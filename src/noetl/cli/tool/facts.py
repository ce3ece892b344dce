"""The kinds that there are, and whether they run here."""

from typing import Any

from msgspec import Struct

from noetl.dsl.document.kinds import Kind
from noetl.loader import installed_kinds, package_of
from noetl.tools.host.extras import install_command, missing_packages
from noetl.tools.host.worker_tools import ENGINE_KINDS


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

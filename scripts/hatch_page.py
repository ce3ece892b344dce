"""Puts the page into the wheel and the sdist: `scripts/web` builds it, where its sources are."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """An editable installation takes the page from the checkout, where it may come and go."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface
        if version == "editable":
            return
        # In an sdist, page and sources are as they were: nothing is to do there, and nothing to fetch.
        subprocess.run([Path(self.root) / "scripts" / "web"], check=True)  # noqa: S603 - our own

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
        root = Path(self.root)
        # A wheel that is made from an sdist has no sources of the page, and needs no network.
        if (root / "web").is_dir():
            subprocess.run([root / "scripts" / "web"], check=True)  # noqa: S603 - a script of this checkout
        elif not (root / "src" / "noetl" / "web" / "page" / "index.html").is_file():
            raise FileNotFoundError("there is neither the page (src/noetl/web/page) nor its sources (web)")

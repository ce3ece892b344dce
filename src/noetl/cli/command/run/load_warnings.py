"""What `noetl validate` would warn about, said where playbooks are run."""

from collections.abc import Callable, Mapping
from typing import Any

from noetl.cli.console import plain_paint
from noetl.cli.problem_text import problems_text
from noetl.dsl.document.problem import Problem
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.catalog.preflight import unread_keys


class LoadWarnings:
    """Says the warnings about each playbook that is read; `problems` are all of them, for JSON.

    `workload` comes with the request, and is for the playbook that is read first.
    """

    def __init__(self, say: Callable[[str], None], workload: Mapping[str, Any]) -> None:
        self._say = say
        self._workload = workload
        self._first_path = ""
        self.problems: list[Problem] = []

    def observe(self, document: PlaybookDocument) -> None:
        playbook, text = document.playbook, document.source.text
        # Where a retry repairs a playbook, what it was before is read, too.
        if playbook.metadata.path == self._first_path:
            return
        self._first_path = self._first_path or playbook.metadata.path
        unread = unread_keys(playbook, text, self._workload)
        self._workload = {}
        for problems, lines in ((playbook.warnings, text), (unread, "")):
            if problems:
                self.problems += problems
                self._say(problems_text(problems, lines, paint=plain_paint))

"""The playbooks of a folder, registered with a server, and again when their files change."""

import threading
from pathlib import Path

from noetl.cli import console
from noetl.cli.problem_text import problems_text
from noetl.cli.server_connection import answered_problems
from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError, ServerUnreachable

LOOK_SECONDS = 1.0
"""Between two looks at the files: what a person saves may take that long to be there."""
_SUFFIXES = (".yaml", ".yml")
_MARK = b"noetl.io/"
"""What every playbook says in its `apiVersion`; other YAML in the folder is left alone."""


class PlaybookFolder:
    """Files below a folder, hidden ones and tests of playbooks apart."""

    def __init__(self, folder: Path, client: Client) -> None:
        self._folder = folder
        self._client = client
        self._seen: dict[Path, tuple[int, int]] = {}
        self.has_playbooks = False

    def register_changes(self) -> None:
        """Registers what is new or has changed since the last time. Raises ServerUnreachable.

        An invalid file is said; what was registered of it before stays.
        """
        current = {path: facts for path in self._files() if (facts := _file_facts(path)) is not None}
        changed = [path for path, facts in current.items() if self._seen.get(path) != facts]
        self._seen = current
        for path in changed:
            self._register(path)

    def _files(self) -> list[Path]:
        return sorted(
            path
            for path in self._folder.rglob("*")
            if path.suffix in _SUFFIXES
            and not path.stem.endswith(".test")
            and not any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        )

    def _register(self, path: Path) -> None:
        name = console.visible(str(path.relative_to(self._folder)))
        try:
            data = path.read_bytes()
            if _MARK not in data:
                return
            self.has_playbooks = True
            registered = self._client.register(data.decode(), file=name)
        except (OSError, UnicodeDecodeError) as error:
            console.say(f"{name}: cannot be read: {error}")
        except ServerError as error:
            console.say(f"{name}: not registered: {console.visible(str(error))}")
            if problems := answered_problems(error.problem):
                console.say(problems_text(problems, data.decode(), paint=console.plain_paint))
        else:
            if registered.created:
                console.say(f"{name}: {console.visible(registered.path)}@{registered.version} registered")


def _file_facts(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None  # it went in between
    return status.st_mtime_ns, status.st_size


def register_in_background(folder: Path, client: Client, *, reload: bool) -> None:
    """In a thread that ends with the process; with `reload`, for as long as that."""
    playbooks = PlaybookFolder(folder, client)
    never = threading.Event()

    def work() -> None:
        try:
            playbooks.register_changes()
            if not playbooks.has_playbooks:
                where = console.visible(str(folder))
                console.say(f"no playbook is in {where} or below; `noetl init` writes a first one")
            while reload and not never.wait(LOOK_SECONDS):
                playbooks.register_changes()
        except ServerUnreachable:
            return  # the server has ended, and the process does

    threading.Thread(target=work, name="noetl-playbooks", daemon=True).start()

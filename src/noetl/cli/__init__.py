"""The command line: it parses and prints, and leaves the work to the rooms below."""

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit, as `noetl.cli.app.run_command_line` does."""
    try:
        # Imported here: Ctrl-C while it starts shall show no traceback.
        from noetl.cli.app import run_command_line
    except KeyboardInterrupt:
        sys.exit("noetl: interrupted")  # with exit code 1
    run_command_line(arguments)

"""The command line: it parses and prints, and leaves the work to the rooms below."""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit, as `noetl.cli.app.run_command_line` does."""
    # Starting makes many objects, and all of them stay: looking for garbage among them took a tenth of it.
    gc.set_threshold(100_000, 50, 100)
    try:
        # Imported here: Ctrl-C while it starts shall show no traceback.
        from noetl.cli.app import run_command_line
    except KeyboardInterrupt:
        sys.exit("noetl: interrupted")  # with exit code 1
    run_command_line(arguments)

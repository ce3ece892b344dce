"""The command line: it parses and prints, and leaves the work to the rooms below."""

from noetl.cli.app import main

__all__ = ["main"]

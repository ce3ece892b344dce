"""The page on the shell tool says what the tool does."""

from pathlib import Path

from noetl.tools.process.captured_program import GRACE
from noetl.tools.process.stream_capture import MAX_LOG, MAX_TEXT, TAIL

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "shell.md").read_text("utf-8")


def test_the_limits_are_those_of_the_tool() -> None:
    amounts = (f"{MAX_LOG >> 20} MiB", f"{MAX_TEXT >> 20} MiB", f"{TAIL >> 10} KiB")
    assert [amount for amount in amounts if amount not in PAGE] == []
    assert (GRACE, "half\na second" in PAGE) == (0.5, True)

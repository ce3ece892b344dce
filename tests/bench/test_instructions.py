"""Instructions are counted once, for the library that they stand in."""

from pathlib import Path

import noetl
from bench.instructions import count_by_library
from bench.parts import RULES, part_of

PROFILE = """\
events: Ir
ob=(1) /usr/lib/libpython3.11.so.1.0
fn=(1) eval
10 100
cob=(2) /venv/site-packages/apsw/__init__.cpython-311-x86_64-linux-gnu.so
cfn=(2) execute
calls=1 5
+2 70
+1 30
ob=(2)
fn=(2)
5 60
* 10
ob=(3) /usr/lib/libz.so.1
fn=(3) crc32
1 7
totals: 207
"""


def test_what_a_called_function_takes_counts_for_its_own_library_alone() -> None:
    counts = count_by_library(PROFILE.splitlines())
    assert counts == {"interpreter": 130, "SQLite": 70, "other": 7}
    assert sum(counts.values()) == 207


def test_a_sample_counts_for_the_innermost_part_of_the_engine() -> None:
    loop = ("lib/python3.11/asyncio/base_events.py", "_run_once")
    begin = ("src/noetl/engine/engine.py", "begin")
    join = ("<frozen posixpath>", "join")
    fold = ("src/noetl/kernel/state/fold.py", "_fold_requested")
    handle = ("src/noetl/kernel/net/decider.py", "handle")
    assert part_of([join, begin, loop]) == "begin"
    assert part_of([fold, handle, begin, loop]) == "fold"
    assert part_of([handle, begin, loop]) == "decide"
    assert part_of([loop]) == "event loop"
    assert part_of([("src/noetl/engine/engine.py", "resolve"), loop]) == "event loop"


def test_every_part_names_code_that_is_there() -> None:
    package = Path(noetl.__file__).parent.parent
    for rule in RULES:
        files = [package / rule.path] if rule.path.endswith(".py") else [*(package / rule.path).rglob("*.py")]
        assert files
        text = "".join(file.read_text("utf-8") for file in files)
        assert all(f"def {function}(" in text for function in rule.functions)

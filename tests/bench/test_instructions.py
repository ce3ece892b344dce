"""Instructions are counted once, for the library that they stand in."""

from bench.instructions import count_by_library

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

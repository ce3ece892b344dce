"""Drivers are extras: without one, what to install is said before anything runs."""

import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path
from textwrap import indent

import pytest

from noetl.dsl.document.kinds import Kind
from noetl.tools.host.extras import missing_packages
from noetl.tools.kind_registry import BUILTIN
from tests.cli.command_line import environment
from tests.playbooks import HEADER

DRIVERS = {
    "postgres": ("psycopg",),
    "mysql": ("asyncmy",),
    "snowflake": ("snowflake",),
    "duckdb": ("duckdb", "pyarrow"),
    "s3": ("obstore",),
    "nats": ("nats",),
    "quantum": ("qiskit", "qiskit_aer", "qiskit_qasm3_import", "pyarrow"),
    "vault": ("hvac",),
}

WITHOUT = """\
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # importing it fails from now on
from noetl.cli import main
main(sys.argv[2:])
"""


def without(drivers: tuple[str, ...], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(drivers), *arguments],
        cwd=cwd,
        env=environment(cwd),
        capture_output=True,
        text=True,
        check=False,
    )


def playbook_of(*kinds: Kind) -> str:
    """One task of each kind, as its example shows it."""
    root_keys = "workload: { prices: [1], orders: [] }\nworkbook: { tasks: { fetch: { kind: noop } } }\n"
    tasks = "".join("- " + indent(kind.example, "  ").lstrip() for kind in kinds)
    return f"{HEADER}{root_keys}workflow:\n  - step: start\n    tool:\n{indent(tasks, '      ')}"


@pytest.mark.parametrize(
    "kind", [kind for kind in BUILTIN if kind.extra and kind.implementation], ids=lambda kind: kind.name
)
def test_without_its_driver_a_kind_names_the_extra(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(playbook_of(kind))
    for driver in DRIVERS[kind.extra]:
        ran = without((driver,), "run", "playbook.yaml", cwd=tmp_path)
        assert ran.returncode == 2
        assert f"the tool kind `{kind.name}` cannot be loaded" in ran.stderr
        assert f"pip install 'noetl[{kind.extra}]'" in ran.stderr
        assert "Traceback" not in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["playbook.yaml"]
    assert without(DRIVERS[kind.extra], "validate", "playbook.yaml", cwd=tmp_path).returncode == 0


def test_a_format_that_needs_a_driver_names_the_extra(tmp_path: Path) -> None:
    task = "{kind: artifact, action: put, format: parquet, content: [{a: 1}]}"
    (tmp_path / "playbook.yaml").write_text(f"{HEADER}workflow:\n  - {{step: start, tool: {task}}}\n")
    ran = without(("pyarrow",), "run", "playbook.yaml", cwd=tmp_path)
    assert ran.returncode == 1
    assert "tables need pyarrow: pip install 'noetl[arrow]'" in ran.stderr


def test_the_other_kinds_need_no_driver(tmp_path: Path) -> None:
    drivers = tuple(driver for extra in DRIVERS.values() for driver in extra)
    kinds = [kind for kind in BUILTIN if not kind.extra and kind.implementation]
    (tmp_path / "playbook.yaml").write_text(playbook_of(*kinds))
    ran = without(drivers, "run", "playbook.yaml", "--dry-run", cwd=tmp_path)
    assert (ran.returncode, "cannot be loaded" in ran.stdout + ran.stderr) == (0, False)


def test_the_extras_are_those_that_kinds_and_providers_name() -> None:
    extras = set(metadata("noetl").get_all("Provides-Extra") or ())
    assert set(DRIVERS) <= extras
    assert {kind.extra for kind in BUILTIN if kind.extra} <= set(DRIVERS)


def test_an_extra_lists_what_it_lacks() -> None:
    assert (
        missing_packages("duckdb") == missing_packages("postgres") == missing_packages("no-such-extra") == ()
    )

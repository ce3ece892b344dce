"""A command that is forked does what one does that is started."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.command_forks import command_forks
from tests.cli.command_line import BROKEN, COMMAND, VALID, environment


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--version"], ""),
        (["no-such-command"], ""),
        (["config", "show", "-o", "json"], ""),
        (["validate", "broken.yaml"], ""),
        (["validate", "-"], BROKEN),
        (["run", "valid.yaml", "--dry-run"], ""),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_all_that_a_command_gives_and_sees_is_the_same(
    arguments: list[str], stdin: str, tmp_path: Path
) -> None:
    (tmp_path / "valid.yaml").write_text(VALID)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    variables = environment(tmp_path, {"NOETL_SLOTS": "3", "TZ": "Asia/Tokyo"})
    forks = command_forks()
    if not forks:
        return  # every command is started here
    forked = forks.run(arguments, tmp_path, variables, stdin.encode())
    started = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        env=variables,
        input=stdin.encode(),
        capture_output=True,
        check=False,
    )
    assert forked
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONIOENCODING", "LC_ALL", "LANG"])
def test_what_python_reads_when_it_starts_is_left_to_a_start(name: str, tmp_path: Path) -> None:
    forks = command_forks()
    if not forks:
        return  # every command is started here
    assert forks.run(["--version"], tmp_path, environment(tmp_path, {name: "another"}), b"") is None

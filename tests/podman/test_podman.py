"""The kind `container` with Podman itself. `tests/tools/test_container.py` has the rest."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import ErrorInfo, Outcome
from noetl.tools.container.tool import ContainerTool
from tests.podman.podman_image import IMAGE
from tests.tools.calls import call_of

SPEC = {"runtime": "podman", "pull": "never", "network": "none"}


def outcome_of(folder: Path, *, timeout: float = 60, spec: Any = None, **inputs: Any) -> Outcome:
    async def run() -> Outcome:
        tool = ContainerTool()
        try:
            call = call_of(
                "container",
                {"image": IMAGE, **inputs},
                spec={**SPEC, **(spec or {})},
                timeout=timeout,
                folder=folder,
            )
            return await tool.run(call)
        finally:
            await tool.close()

    return asyncio.run(run())


def error_of(folder: Path, **inputs: Any) -> ErrorInfo:
    error = outcome_of(folder, **inputs).error
    assert error is not None
    return error


def _containers() -> set[str]:
    podman = shutil.which("podman")
    assert podman is not None
    command = [podman, "ps", "--all", "--quiet", "--filter=label=noetl"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = _containers()
    yield
    assert _containers() <= before


def test_a_container_of_podman_gets_its_input_variables_and_folders(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("from a file\n")
    outcome = outcome_of(
        tmp_path,
        command='read line; read file <a; echo "$line $WORD $file"; echo x 2>/dev/null >a || echo read only >&2',
        stdin="in\n",
        env={"WORD": "a b"},
        mounts=["./data:/data:ro"],
        cwd="/data",
    )
    assert outcome.result == {"exit_code": 0, "stdout": "in a b from a file\n", "stderr": "read only\n"}


def test_podman_tells_an_exit_code_from_a_lack_of_memory(tmp_path: Path) -> None:
    error = error_of(tmp_path, command="exit 3")
    assert (error.kind, error.details) == ("process_exit", {"exit_code": 3})
    error = error_of(tmp_path, command="a=aaaaaaaa; while :; do a=$a$a; done", spec={"memory": "16MB"})
    assert (error.kind, error.details) == ("limit", {"exit_code": 137, "out_of_memory": True})


def test_what_podman_does_not_have_is_not_found(tmp_path: Path) -> None:
    assert error_of(tmp_path, image="localhost/noetl-absent:latest").kind == "not_found"
    assert error_of(tmp_path, command=["no-such-program"]).kind == "not_found"


def test_a_container_of_podman_ends_with_the_time_of_its_task(tmp_path: Path) -> None:
    error = error_of(tmp_path, command="trap '' TERM; while :; do :; done", timeout=5)
    assert (error.kind, error.retryable) == ("timeout", True)

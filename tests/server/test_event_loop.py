"""The event loop of server and worker."""

import subprocess
import sys
from pathlib import Path

import pytest

from noetl.own_loop import run_on_uvloop
from tests.plane.plane_processes import PATIENCE, WorkerProcess
from tests.server.server_process import server_process

WHICH_LOOP = """
import asyncio, sys
if sys.argv[1:] == ["without"]:
    sys.modules["uvloop"] = None
from noetl.own_loop import run_on_uvloop
async def loop():
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]
print(run_on_uvloop(loop()))
"""


@pytest.mark.parametrize(("words", "module"), [([], "uvloop"), (["without"], "asyncio")])
def test_it_is_uvloop_where_that_is_installed(words: list[str], module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHICH_LOOP, *words],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.strip() == module


def test_what_the_work_raises_comes_through() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_on_uvloop(fail())


@pytest.mark.skipif(sys.platform != "linux", reason="where a process says what it has loaded")
def test_server_and_worker_run_on_it(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        token = (server.home / "worker.token").read_text().strip()
        worker = WorkerProcess(server.url, tmp_path, NOETL_TOKEN=token)
        try:
            worker.wait_for("registered with")
            for process in (server.process, worker.process):
                assert "uvloop/loop" in Path(f"/proc/{process.pid}/maps").read_text()
        finally:
            assert worker.stop() == 0
        assert server.stop() == 0

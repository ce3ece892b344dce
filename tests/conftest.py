"""What holds for all tests."""

import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.workermanage import NodeManager  # type: ignore[import-untyped]  # it has no types

from bench.s3_server import S3Server, s3_server
from tests.new_seeds import RUN_SEED
from tests.pgbouncer.pooler import why_pgbouncer_is_not_used
from tests.podman.podman_image import why_podman_is_not_used

gc.disable()  # until all is collected: what is imported and found stays

pytest.register_assert_rewrite("noetl.testing")

pytest_plugins = [
    "tests.postgres",
    "tests.nats_server",
    "tests.gcs_server",
    "tests.azure_server",
    "tests.file_order",
    "tests.part_times",
]

# A deadline for each example, or for making one, would measure the machine; the timeout of a test is
# enough. Runs are repeatable but for what RUN_SEED adds; `--hypothesis-profile=explore` looks for new
# examples everywhere.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Whoever ends this process ends its workers and the servers of its tests, too, as Ctrl-C does.

    What a shell starts in the background ignores Ctrl-C, and so would all that tests start and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # A worker that is killed leaves what its tests have started, and 10 s are short on a busy machine.
        NodeManager.EXIT_TIMEOUT = 60


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than processors: while the test of one waits for a process, a lease or a time, another works."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + processors // 2


def pytest_report_header() -> str:
    return f"new seeds: TEST_SEED={RUN_SEED} repeats this run"


def pytest_collection_finish() -> None:
    """Ten thousand tests and all that they import live until the end: a fifth of the time went into walking them."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000)


def _count_tests(folder: str) -> int:
    texts = (path.read_text() for path in Path(__file__).parent.glob(f"{folder}/test_*.py"))
    return sum(len(re.findall(r"^(?:async )?def test_", text, re.MULTILINE)) for text in texts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not collected is said: each folder's `conftest.py` leaves its tests out."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same new seeds again: TEST_SEED={RUN_SEED}", yellow=True)
    if find_spec("qiskit") is None:
        tests = _count_tests("quantum")
        terminalreporter.write_line(
            f"NOT RUN: {tests} tests of the quantum tool, which need Qiskit (scripts/test --quantum)",
            yellow=True,
        )
    if (reason := why_podman_is_not_used()) is not None:
        tests = _count_tests("podman")
        terminalreporter.write_line(
            f"NOT RUN: {tests} tests of the container tool with Podman, which {reason}", yellow=True
        )
    if (reason := why_pgbouncer_is_not_used()) is not None:
        tests = _count_tests("pgbouncer")
        terminalreporter.write_line(f"NOT RUN: {tests} tests with PgBouncer, which {reason}", yellow=True)
    if os.environ.get("NOETL_TEST_MARIADB") == "no":
        tests = _count_tests("mysql")
        terminalreporter.write_line(
            f"NOT RUN: {tests} tests of the mysql tool, which need a MariaDB (--no-mariadb)", yellow=True
        )
    if os.environ.get("NOETL_TEST_BROWSER") == "no":
        terminalreporter.write_line("NOT RUN: tests/web, which needs a browser (--no-browser)", yellow=True)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, which `tmp_path` is not."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: for tests that sync much, and need no disk that does it."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server

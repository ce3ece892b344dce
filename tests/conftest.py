"""What holds for all tests."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.new_seeds import RUN_SEED
from tests.s3_server import S3Server, s3_server

pytest.register_assert_rewrite("noetl.testing")

pytest_plugins = ["tests.postgres"]

# A deadline for each example, or for making one, would measure the machine; the timeout of a test is
# enough. Runs are repeatable but for what RUN_SEED adds; `--hypothesis-profile=explore` looks for new
# examples everywhere.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeatable")


def pytest_report_header() -> str:
    return f"new seeds: TEST_SEED={RUN_SEED} repeats this run"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files whose tests may take long go first: at the end, one worker would wait for what another just began."""
    long_files = {item.path for item in items if item.get_closest_marker("timeout")}
    items.sort(key=lambda item: item.path not in long_files)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not collected is said: `tests/quantum/conftest.py` leaves its tests out without Qiskit."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same new seeds again: TEST_SEED={RUN_SEED}", yellow=True)
    if find_spec("qiskit") is None:
        texts = (path.read_text() for path in Path(__file__).parent.glob("quantum/test_*.py"))
        tests = sum(len(re.findall(r"^(?:async )?def test_", text, re.MULTILINE)) for text in texts)
        terminalreporter.write_line(
            f"NOT RUN: {tests} tests of the quantum tool, which need Qiskit (scripts/test --quantum)",
            yellow=True,
        )


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

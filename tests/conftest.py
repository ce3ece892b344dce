"""What holds for all tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.s3_server import S3Server, s3_server

pytest.register_assert_rewrite("noetl.testing")

pytest_plugins = ["tests.postgres"]

# A deadline for each example, or for making one, would measure the machine; the timeout of a test is
# enough. Runs are repeatable; `--hypothesis-profile=explore` looks for new examples.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, which `tmp_path` is not."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server

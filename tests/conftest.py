"""What holds for all tests."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("noetl.testing")

# A deadline for each example would measure the machine; the timeout of a test is enough.
settings.register_profile("noetl", deadline=None)
settings.load_profile("noetl")

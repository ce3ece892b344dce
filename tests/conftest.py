"""What holds for all tests."""

from hypothesis import settings

# A deadline for each example would measure the machine; the timeout of a test is enough.
settings.register_profile("noetl", deadline=None)
settings.load_profile("noetl")

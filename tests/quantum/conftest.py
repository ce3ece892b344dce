"""These tests need the extra `quantum`: `scripts/test --quantum` installs it."""

from importlib.util import find_spec

collect_ignore_glob = ["test_*.py"] if find_spec("qiskit") is None else []

"""A pytest plugin that prints which tests carry which clause of the specification."""

import json

import pytest

PREFIX = "clauses: "


def pytest_collection_finish(session: pytest.Session) -> None:
    tests_by_clause: dict[str, list[str]] = {}
    # By file: the order in which tests run depends on what they took before.
    for item in sorted(session.items, key=lambda item: item.path):
        file = item.path.relative_to(session.config.rootpath / "tests")
        for mark in item.iter_markers("spec"):
            tests = tests_by_clause.setdefault(mark.args[0], [])
            name = f"{file}::{getattr(item, 'originalname', item.name)}"
            if name not in tests:
                tests.append(name)
    print(f"\n{PREFIX}{json.dumps(tests_by_clause)}")  # noqa: T201 - this is what it is for

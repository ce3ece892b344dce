"""The rules for names that a program can check; what they are for is in CONTRIBUTING.md."""

import ast
from collections import defaultdict

import pytest

from tests.architecture.source_tree import FOLDERS, bound_names, modules

REPEATED_STEMS = {
    "__init__": "a package",
    "__main__": "a package that is a program",
    "conftest": "what pytest reads by this name",
    "errors": "what a package raises",
}
KIND_PARTS = {
    "kind": "what a document may say",
    "tool": "what runs it",
    "auth": "how it signs in",
    "failure": "what its driver's errors mean",
    "pool": "the connections that it keeps",
    "session": "what one attempt does on its connection",
    "text": "the text that it is given, as its server sees it",
    "types": "how its values are read and written",
}
"""Modules that several packages of `noetl.tools` have on purpose."""
STORE_PARTS = {
    "store": "the port, and what keeps its promises in a package of `noetl.stores`",
    "queries": "its SQL",
    "reader": "what it asks",
    "writer": "the one place where it writes",
    "consistency": "whether what it holds can be",
}
REPEATED_FUNCTIONS = {
    "check": "what a kind of tool says about a task beyond its types",
    "main": "the entry of a program",
}
"""In `noetl.cli.command` modules and functions are called by what is typed, whatever else has that name."""

FORBIDDEN_ENDINGS = ("ing", "ed", "ly")
NOUNS = frozenset({"binding", "mapping", "marking", "routing", "testing"})
"""Words that end so and are things."""
FORBIDDEN_STEMS = frozenset(
    [
        "again",
        "alike",
        "base",
        "common",
        "going",
        "helpers",
        "keep",
        "light",
        "live",
        "manager",
        "misc",
        "news",
        "now",
        "outside",
        "place",
        "places",
        "shown",
        "stored",
        "told",
        "torn",
        "utils",
        "ways",
        "when",
        "whole",
    ]
)
EMPTY_WORDS = frozenset(
    [
        "alike",
        "around",
        "asked",
        "found",
        "gave",
        "given",
        "it",
        "kept",
        "one",
        "place",
        "said",
        "shown",
        "such",
        "told",
        "whole",
    ]
)
"""Names that say nothing about what they hold."""


def has_role(name: str) -> bool:
    """Whether a module is called as others are on purpose."""
    stem = name.rsplit(".", 1)[-1]
    return (
        name.startswith("noetl.cli.command")
        or (name.startswith("noetl.tools.") and stem in KIND_PARTS)
        or (name.startswith("noetl.stores.") and stem in STORE_PARTS)
    )


def repeated(homes: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: names for name, names in sorted(homes.items()) if len(names) > 1}


def test_a_public_class_name_stands_in_one_module() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules("src"):
        for node in module.definitions():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    assert repeated(homes) == {}


def test_a_public_function_name_stands_in_one_module() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules("src"):
        if module.name.startswith("noetl.cli.command"):
            continue
        # A set: one function may be defined several times, for its overloads.
        for name in {node.name for node in module.definitions() if not isinstance(node, ast.ClassDef)}:
            if not name.startswith("_") and name not in REPEATED_FUNCTIONS:
                homes[name].append(module.name)
    assert repeated(homes) == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_is_called_by_a_noun(folder: str) -> None:
    words = {word.removeprefix("test_") for module in modules(folder) for word in module.name.split(".")}
    wrong = {word for word in words - NOUNS if word in FORBIDDEN_STEMS or word.endswith(FORBIDDEN_ENDINGS)}
    assert wrong == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_last_part_of_a_module_name_stands_once(folder: str) -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules(folder):
        if module.stem not in REPEATED_STEMS and not has_role(module.name):
            homes[module.stem].append(module.name)
    assert repeated(homes) == {}


def test_no_two_folders_differ_by_one_letter() -> None:
    folders = {module.file.parent for module in modules("src")}
    assert {folder for folder in folders if folder.with_name(folder.name + "s") in folders} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_variable_says_what_it_holds(folder: str) -> None:
    empty = [
        f"{module.path}:{line} {name}"
        for module in modules(folder)
        for name, line in bound_names(module.tree)
        if name.lstrip("_") in EMPTY_WORDS
    ]
    assert empty == []

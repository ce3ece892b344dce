"""References as plain values, and user data that looks like one."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.model import reference
from noetl.model.reference import (
    MARKER,
    append_to_list,
    escape,
    is_manifest,
    is_reference,
    list_chunk,
    manifest,
    may_hold_marker,
    object_reference,
    references_in,
    stored_keys,
    unescape,
    value_reference,
)
from noetl.model.secret import is_secret, secrets_in

SOURCE = Path(reference.__file__).parents[1]

keys = st.sampled_from(["a", "noetl", "$noetl", "$$noetl", "$$$noetl", "$noetl$", "x$noetl", "$"])
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["ref", "manifest", "secret", "$noetl"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
)


@given(data)
def test_escaped_data_is_never_a_reference_and_comes_back_as_it_was(value: Any) -> None:
    escaped = escape(value)
    assert list(references_in(escaped)) == []
    assert unescape(escaped) == value


@given(data)
def test_a_search_of_the_bytes_misses_nothing_that_a_walk_finds(value: Any) -> None:
    """`may_hold_marker` spares the walk; where it says no, the walk would change and find nothing."""
    assert escape(value) == reference._escape(value)
    assert unescape(value) == reference._unescape(value)
    assert list(references_in(value)) == list(walk(value, is_reference))
    assert list(secrets_in(value)) == list(walk(value, is_secret))


def walk(value: Any, stands_for_a_value: Callable[[object], bool]) -> Iterator[Any]:
    if stands_for_a_value(value):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item, stands_for_a_value)


def test_the_marker_is_spelled_once() -> None:
    rooms = (SOURCE / name for name in ("model", "events", "expr"))
    files = {path for room in rooms for path in room.rglob("*.py") if MARKER in literals(path)}
    assert files == {SOURCE / "model" / "reference.py"}


def literals(path: Path) -> str:
    """The texts and bytes of a module, without its docstrings and those of what it defines."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings
    )
    return "\n".join(str(node.value) for node in constants if isinstance(node.value, str | bytes))


@given(data)
def test_what_needs_no_escaping_is_the_same_object(value: Any) -> None:
    if not may_hold_marker(value):
        assert escape(value) is value


def test_a_reference_says_what_it_stands_for() -> None:
    marker = value_reference("E/abc", ["x"] * 9, size=37, preview="[…")
    assert is_reference(marker)
    assert not is_manifest(marker)
    assert stored_keys(marker) == ("E/abc",)
    assert marker == {
        "$noetl": "ref",
        "key": "E/abc",
        "size": 37,
        "media_type": "application/json",
        "hash": "abc",
        "store": "auto",
        "checksum": "sha256:abc",
        "type": "list",
        "length": 9,
        "preview": "[…",
        "extracted": {},
    }


def test_a_manifest_counts_its_chunks_and_its_tail() -> None:
    marker = manifest([list_chunk("E/a", 0, 3, 10), list_chunk("E/b", 3, 5, 20)], "[", [1, 2])
    assert is_reference(marker)
    assert is_manifest(marker)
    assert (marker["total"], marker["length"], marker["size"]) == (7, 7, 30)
    assert stored_keys(marker) == ("E/a", "E/b")
    assert marker["store"] == "auto"
    assert manifest([list_chunk("disk:E/a", 0, 3, 10)])["store"] == "disk"


@pytest.mark.spec("000 §9.1")
def test_a_reference_names_its_store_and_its_checksum() -> None:
    for marker in (
        value_reference("disk:E/abc", "x", size=3),
        object_reference("disk:E/abc", size=3, media_type="image/png"),
    ):
        assert (marker["store"], marker["key"], marker["size"], marker["checksum"]) == (
            "disk",
            "disk:E/abc",
            3,
            "sha256:abc",
        )


def test_a_stored_list_grows_by_its_tail() -> None:
    first = append_to_list(value_reference("E/a", [1, 2], size=5), [3])
    assert first is not None
    assert (first["total"], first["chunks"], first["tail"]) == (3, [list_chunk("E/a", 0, 2, 5)], [3])
    second = append_to_list(first, [4, 5])
    assert second is not None
    assert (second["total"], second["tail"]) == (5, [3, 4, 5])


@pytest.mark.parametrize("value", ["text", {"a": 1}])
def test_only_lists_grow(value: Any) -> None:
    assert append_to_list(value_reference("E/a", value, size=5), [3]) is None


@pytest.mark.parametrize("value", [None, 1, "$noetl", ["$noetl"], {"$noetl": "secret"}, {"$noetl": 1}, {}])
def test_anything_else_is_no_reference(value: Any) -> None:
    assert not is_reference(value)

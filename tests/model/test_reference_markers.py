"""References as plain values, and user data that looks like one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.model.reference import (
    append_to_list,
    escape,
    is_manifest,
    is_reference,
    list_chunk,
    manifest,
    may_hold_marker,
    references_in,
    stored_keys,
    unescape,
    value_reference,
)

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

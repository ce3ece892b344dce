from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.guest.frame import LENGTH, CodeAnswer, FrameReader, _box_integers, pack, unpack

VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_a_message_comes_out_as_it_went_in_however_large_its_numbers(value: Any) -> None:
    wide = [value, 2**64, -(2**63) - 1, {"n": 3**500}]
    assert unpack(pack(CodeAnswer(result=wide))[LENGTH.size :], CodeAnswer) == CodeAnswer(result=wide)


NARROW = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(NARROW)
def test_a_message_without_large_numbers_is_the_same_box_integers_or_not(value: Any) -> None:
    assert pack(CodeAnswer(result=value)) == pack(CodeAnswer(result=_box_integers(value)))


@given(st.lists(VALUES, max_size=4), st.integers(1, 7))
def test_frames_are_found_wherever_the_parts_are_cut(values: list[Any], size: int) -> None:
    stream = b"".join(pack(CodeAnswer(result=value)) for value in values)
    frames = FrameReader()
    parts = (stream[start : start + size] for start in range(0, len(stream), size))
    bodies = [body for part in parts for body in frames.feed(part)]
    assert [unpack(body, CodeAnswer).result for body in bodies] == values
    assert frames.size == 0

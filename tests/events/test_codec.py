"""What was written is what is read, also by later releases."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.codec import FORMAT, Codec, decode, encode
from noetl.events.errors import EventUnreadable, EventUnwritable
from noetl.events.event_kind import EVENT_KINDS, EventKind, kind_of_body
from noetl.model.errors import NoetlError
from noetl.model.json import Json
from tests.events.any_event import AT_ANY_SPEED, any_of

STEP_DONE = 20


def round_trip(body: EventBody) -> EventBody:
    return decode(kind_of_body(body).number, encode(body), FORMAT)


@pytest.mark.parametrize("kind", EVENT_KINDS, ids=lambda kind: kind.name)
@AT_ANY_SPEED
@given(data=st.data())
def test_every_body_survives(kind: EventKind, data: st.DataObject) -> None:
    body = data.draw(any_of(kind.body))
    assert round_trip(body) == body
    # `repr` also tells 1 from 1.0 and from true, and 0.0 from -0.0.
    assert repr(round_trip(body)) == repr(body)


@pytest.mark.parametrize(
    "value",
    [
        2**53 + 1,
        2**63,
        2**64,
        -(2**200),
        10**4000,
        1e22,
        5e-324,
        1.7976931348623157e308,
        0.1 + 0.2,
        -0.0,
        1.0,
        "naïve — 日本語 🜚",
        "\x00\x7f\u2028\ufeff",
        "",
        "007",
        {"": None, "a.b": {"c": [[], {}, [None]]}, "1": 1},
        False,
        0,
        None,
        [],
        {},
    ],
    ids=lambda value: repr(value)[:20],
)
def test_values_survive_exactly(value: Json) -> None:
    body = of.SignalReceived(signal="go", payload=value)
    assert repr(round_trip(body)) == repr(body)


def test_what_is_default_is_not_written() -> None:
    assert encode(of.StepDone(run="r1")) == b'{"run":"r1"}'
    assert encode(of.StepDone(run="r1", source="server")) == b'{"run":"r1","source":"server"}'


def test_a_field_that_a_later_release_added_is_passed_over() -> None:
    assert decode(STEP_DONE, b'{"run":"r1","mood":"good"}', FORMAT) == of.StepDone(run="r1")


@pytest.mark.parametrize(
    "value",
    ["\ud800", 10**5000, {(): 1}, object()],
    ids=["half a character", "too many digits", "a key that is no text", "an object"],
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(EventUnwritable, match=r"^StepDone cannot be written: ") as refused:
        encode(of.StepDone(run="r1", result=value))
    assert isinstance(refused.value, NoetlError)


def test_what_is_too_deep_is_refused() -> None:
    value: Json = None
    for _ in range(100_000):
        value = [value]
    with pytest.raises(EventUnwritable, match=r"^StepDone cannot be written: "):
        encode(of.StepDone(run="r1", result=value))
    data = b'{"run":"r1","result":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(EventUnreadable, match=r"^StepDone cannot be read: "):
        decode(STEP_DONE, data, FORMAT)


@pytest.mark.parametrize("number", [0, -1, 35, 32767])
def test_an_unknown_number_is_refused(number: int) -> None:
    with pytest.raises(EventUnreadable, match=f"event kind {number} is unknown here: a newer release"):
        decode(number, b"{}", FORMAT)


@pytest.mark.parametrize("version", [-1, 0, FORMAT + 1, 99])
def test_another_format_version_is_refused(version: int) -> None:
    with pytest.raises(EventUnreadable, match=f"StepDone has format version {version}, and .* reads 1 to 1"):
        decode(STEP_DONE, b'{"run":"r1"}', version)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"run":1}',
        b'{"run":"r1","patches":[{"scope":"sky","path":[]}]}',
        b'{"run":"\xff"}',
    ],
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(EventUnreadable, match=r"^StepDone cannot be read: "):
        decode(STEP_DONE, data, FORMAT)


def rename(old: str, new: str) -> Any:
    return lambda fields: {(new if name == old else name): value for name, value in fields.items()}


def double(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "result": fields["result"] * 2}


LATER = Codec(
    4,
    {
        (STEP_DONE, 1): rename("step_run", "run"),
        (STEP_DONE, 2): rename("value", "result"),
        (STEP_DONE, 3): double,
    },
)


@pytest.mark.parametrize(
    ("version", "data", "result"),
    [
        (1, b'{"step_run":"r1","value":4}', 8),
        (2, b'{"run":"r1","value":4}', 8),
        (3, b'{"run":"r1","result":4}', 8),
        (4, b'{"run":"r1","result":4}', 4),
    ],
)
def test_old_bodies_are_brought_up_one_version_at_a_time(version: int, data: bytes, result: int) -> None:
    assert LATER.decode(STEP_DONE, data, version) == of.StepDone(run="r1", result=result)


def test_kinds_without_upcasters_read_as_they_are() -> None:
    body = of.LoopDone(
        run="r1", total=2**70, succeeded=1, patches=(of.Patch(scope="run", path=("a",), value=1.0),)
    )
    read = LATER.decode(kind_of_body(body).number, LATER.encode(body), 1)
    assert repr(read) == repr(body)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}"])
def test_damaged_old_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(EventUnreadable, match=r"^StepDone cannot be read: "):
        Codec(2, {}).decode(STEP_DONE, data, 1)


def test_a_codec_refuses_what_is_newer_than_itself() -> None:
    with pytest.raises(EventUnreadable, match="format version 5, and this release of noetl reads 1 to 4"):
        LATER.decode(STEP_DONE, b'{"run":"r1"}', 5)


@pytest.mark.parametrize("version", [0, 4, 5])
def test_an_upcaster_from_a_version_that_is_not_old_is_a_mistake(version: int) -> None:
    with pytest.raises(ValueError, match=f"from version {version}"):
        Codec(4, {(STEP_DONE, version): double})


def test_an_upcaster_for_an_unknown_number_is_a_mistake() -> None:
    with pytest.raises(EventUnreadable, match="event kind 999"):
        Codec(2, {(999, 1): double})

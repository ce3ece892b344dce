"""What is masked, what is left alone, and what can be made again."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.credentials.credential import secrets_of
from noetl.credentials.files import CHUNK, holds_secret, is_textual, mask_file
from noetl.credentials.masker import LEARNED, Masker
from noetl.credentials.needle import CUT
from noetl.model.reference import Stored, escape
from noetl.model.secret import Lost, Origin, is_secret, keys_of_secret, rebuilt, shown, whole
from tests.secrets.searching import SECRET, found_in

ORIGIN = Origin("db", ("password",), playbook="hash")


def masker_of(*secrets: Any) -> Masker:
    masker = Masker()
    for number, secret in enumerate(secrets):
        masker.add(secret, Origin(f"s{number}", ("value",)))
    return masker


WRITTEN = [
    SECRET,
    f"Bearer {SECRET}!",
    json.dumps({"a": [SECRET]}),
    json.dumps({"a": SECRET}, ensure_ascii=False),
    f"http://h/?q={quote_plus(SECRET)}&r={quote(SECRET, safe='')}/{quote(SECRET)}",
    *(
        f"Basic {base64.b64encode((before + SECRET + after).encode()).decode()}"
        for before in ("", "u:", "us:", "use:")
        for after in ("", "x", "xy")
    ),
    *(
        base64.urlsafe_b64encode(f"{before}{SECRET}".encode()).decode().rstrip("=")
        for before in ("", "a", "ab")
    ),
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_secret_is_found_however_it_is_written_and_put_there_again(text: str) -> None:
    masker = masker_of(SECRET)
    assert not found_in(masker.text(text).encode())
    assert "***" in masker.text(text)
    (masked,) = masker.value([text])
    assert is_secret(masked)
    assert not found_in(json.dumps(masked).encode())
    values = dict.fromkeys(keys_of_secret(masked), SECRET)
    assert rebuilt(masked, values) == text
    assert shown(masked) == masker.text(text)


@given(st.text(min_size=6, max_size=40).filter(lambda text: text.strip() != ""), st.text(), st.text())
def test_any_secret_in_any_text_is_masked_and_made_again(secret: str, before: str, after: str) -> None:
    masker = masker_of(secret)
    text = before + secret + after
    assert secret not in masker.text(text) or secret in before + "***" + after
    (masked,) = masker.value([text])
    assert rebuilt(masked, dict.fromkeys(keys_of_secret(masked), secret)) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_holds_no_secret_is_the_very_same(value: Any) -> None:
    masker = masker_of("\0 no text of this test \0")
    assert masker.value(value) is value
    assert masker.recorded(value) is value
    assert masker.told(value) is value


def test_a_mixture_of_forms_is_masked_and_not_made_again() -> None:
    masker = masker_of("a/b c/d&e")
    (masked,) = masker.value(["a%2Fb c/d%26e"])
    assert shown(masked) == "***"
    with pytest.raises(Lost):
        keys_of_secret(masked)


def test_what_cannot_be_made_again_is_kept_where_somebody_keeps_it() -> None:
    kept: list[Any] = []

    def keep(value: Any) -> Origin:
        kept.append(value)
        return Origin("text", execution="x", number=7)

    masker = Masker(keep)
    masker.add("a/b c/d&e", ORIGIN)
    value = {"a/b c/d&e": 1}
    masked = masker.value({"one": "<a%2Fb c/d%26e>", "two": value})
    assert kept == ["<a%2Fb c/d%26e>", value]
    assert shown(masked["one"]) == "<***>"
    (key,) = keys_of_secret(masked["two"])
    assert rebuilt(masked["two"], {key: value}) == value


def test_short_secrets_are_masked_only_where_they_are_whole_values() -> None:
    masker = Masker()
    assert not masker.add("abc", ORIGIN)
    assert masker.value(["abc", "abcd", {"abc": "x abc"}]) == [whole(ORIGIN), "abcd", {"abc": "x abc"}]
    assert masker.text("abc") == "***"
    assert masker.text("x abc") == "x abc"


def test_what_was_cut_off_is_masked_as_far_as_it_is_there() -> None:
    masker = masker_of("abcdefghijkl")
    much = "x" * CUT
    for text, seen in (
        (f"{much}abcdefghijk", f"{much}***"),
        ("x abcdef… y", "x ***… y"),
        (f"ghijkl{much}", f"***{much}"),
        (f"{much}abcde", f"{much}abcde"),
        ("abcdefgh and ghijkl", "abcdefgh and ghijkl"),
        ("ghijkl", "ghijkl"),
    ):
        assert masker.text(text) == seen
        (masked,) = masker.value([text])
        assert (shown(masked) if is_secret(masked) else masked) == seen


def test_numbers_are_masked_as_values_and_in_texts() -> None:
    masker = masker_of(12345678, 42, True)
    masked = masker.value([12345678, 42, 1, True, "pin 12345678"])
    assert [is_secret(one) for one in masked] == [True, False, False, False, True]


def test_the_lines_of_a_key_are_masked_one_by_one() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END KEY-----"
    masker = masker_of(pem)
    assert masker.text(f"key: {pem}") == "key: ***"
    assert masker.text("> MIIEvQIBADANBgkqhkiG9w0BAQEFAASC") == "> ***"
    assert masker.text("-----BEGIN KEY-----") == "-----BEGIN KEY-----"
    (masked,) = masker.value(["> MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"])
    assert rebuilt(masked, dict.fromkeys(keys_of_secret(masked), pem)).endswith("BAQEFAASC")


def test_references_and_what_is_masked_already_stay() -> None:
    masker = masker_of("secret-key")
    stored = Stored({"$noetl": "ref", "key": "x/1", "media_type": "text/plain"})
    marker = whole(Origin("secret-key"))
    assert masker.value({"a": stored, "b": marker, "c": "secret-key"})["a"] is stored
    assert masker.value({"b": marker, "c": "secret-key"})["b"] is marker


def test_user_data_that_looks_like_a_marker_is_masked_as_any_other() -> None:
    masker = masker_of("secret-key")
    masked = masker.value({"$noetl": "secret", "parts": ["secret-key"]})
    assert "secret-key" not in json.dumps(escape(masked))


def test_what_tasks_gave_is_forgotten_in_the_end() -> None:
    masker = Masker()
    for number in range(LEARNED + 1):
        masker.learn({"token": f"token-{number:06}"}, Origin("login", execution="x", number=number + 1))
    assert masker.text("token-000000") == "token-000000"
    assert masker.text(f"token-{LEARNED:06}") == "***"


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"value": "x"}, [("value",)]),
        ({"host": "h", "port": 1, "user": "u", "password": "p", "database": "d"}, [("password",)]),
        ({"db_host": "h", "db_user": "u", "db_password": "p", "db_name": "d"}, [("db_password",)]),
        (
            {"client_id": "c", "client_secret": "s", "access_token": "t"},
            [("client_secret",), ("access_token",)],
        ),
        ({"url": "https://u:pass@h/"}, [("url", "password")]),
        ({"dsn": "host=h password=pass"}, [("dsn",), ("dsn", "password")]),
        ({"keys": {"host": "h", "one": "k"}}, [("keys", "one")]),
        ({"hosts": ["a"], "host": "b"}, [("hosts", 0)]),
    ],
)
def test_which_fields_are_secret(fields: dict[str, Any], secret: list[Any]) -> None:
    assert [path for path, _ in secrets_of(fields)] == secret


def test_a_file_of_text_is_masked_across_the_places_where_it_is_cut(tmp_path: Path) -> None:
    masker = masker_of(SECRET)
    line = "x" * 100 + SECRET + "\n"
    path = tmp_path / "text"
    path.write_text(line * (2 * CHUNK // len(line)) + "end", "utf-8")
    assert holds_secret(path, masker)
    mask_file(path, masker)
    assert not holds_secret(path, masker)
    lines = path.read_text("utf-8").splitlines()
    assert set(lines[:-1]) == {"x" * 100 + "***"}
    assert lines[-1] == "end"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_without_lines_is_masked_too(tmp_path: Path) -> None:
    masker = masker_of("secret-in-one-line")
    path = tmp_path / "line"
    path.write_text(("y" * (CHUNK - 9) + "secret-in-one-line") * 6, "utf-8")
    assert holds_secret(path, masker)
    mask_file(path, masker)
    assert path.read_text("utf-8") == ("y" * (CHUNK - 9) + "***") * 6


def test_bytes_that_are_no_text_are_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(bytes(range(256)) * (CHUNK // 256) + b"\xff" + SECRET.encode() + b"\xfe")
    assert holds_secret(path, masker_of(SECRET))
    assert not holds_secret(path, masker_of("another secret"))


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/csv; charset=utf-8", True),
        ("application/json", True),
        ("application/problem+json", True),
        ("application/vnd.apache.arrow.stream", False),
        ("application/octet-stream", False),
    ],
)
def test_which_files_are_text(media_type: str, text: bool) -> None:
    assert is_textual(media_type) == text

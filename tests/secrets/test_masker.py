"""What is masked, what is left alone, and what can be made again."""

import base64
import html
import json
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.credentials.credential import secrets_of
from noetl.credentials.masker import MAX_LEARNED, Masker
from noetl.credentials.secret_pattern import TRUNCATION_LENGTH
from noetl.model.reference import StoredReference, escape
from noetl.model.secret import (
    SecretLost,
    SecretOrigin,
    is_secret,
    mask_secret,
    restore_secret,
    secret_keys,
    secret_marker,
)
from tests.secrets.secret_search import SECRET, secret_forms_in

ORIGIN = SecretOrigin("db", ("password",), playbook="hash")


def masker_of(*secrets: Any) -> Masker:
    masker = Masker()
    for number, secret in enumerate(secrets):
        masker.add(secret, SecretOrigin(f"s{number}", ("value",)))
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
    assert not secret_forms_in(masker.mask_text(text).encode())
    assert "***" in masker.mask_text(text)
    (masked,) = masker.mask_value([text])
    assert is_secret(masked)
    assert not secret_forms_in(json.dumps(masked).encode())
    values = dict.fromkeys(secret_keys(masked), SECRET)
    assert restore_secret(masked, values) == text
    assert mask_secret(masked) == masker.mask_text(text)


@given(st.text(min_size=6, max_size=40).filter(lambda text: text.strip() != ""), st.text(), st.text())
def test_any_secret_in_any_text_is_masked_and_made_again(secret: str, before: str, after: str) -> None:
    masker = masker_of(secret)
    text = before + secret + after
    assert secret not in masker.mask_text(text) or secret in before + "***" + after
    (masked,) = masker.mask_value([text])
    assert restore_secret(masked, dict.fromkeys(secret_keys(masked), secret)) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_holds_no_secret_is_the_very_same(value: Any) -> None:
    masker = masker_of("\0" + "qzjx" * 8 + "\0")
    assert masker.mask_value(value) is value
    assert masker.mask_recorded(value) is value
    assert masker.mask_for_display(value) is value


def test_so_is_what_only_looks_like_one_in_its_json() -> None:
    masker = masker_of("0000000000")
    value = {"an escape and six noughts": ["\x00" + "000000"]}
    assert masker.mask_value(value) is value
    assert masker.mask_recorded(value) is value
    assert masker.mask_for_display(value) is value


def test_a_mixture_of_forms_is_masked_and_not_made_again() -> None:
    masker = masker_of("a/b c/d&e")
    (masked,) = masker.mask_value(["a%2Fb c/d%26e"])
    assert mask_secret(masked) == "***"
    with pytest.raises(SecretLost):
        secret_keys(masked)


def test_what_cannot_be_made_again_is_kept_where_somebody_keeps_it() -> None:
    remembered: list[Any] = []

    def remember(value: Any) -> SecretOrigin:
        remembered.append(value)
        return SecretOrigin("text", execution="x", number=7)

    masker = Masker(remember)
    masker.add("a/b c/d&e", ORIGIN)
    value = {"a/b c/d&e": 1}
    masked = masker.mask_value({"one": "<a%2Fb c/d%26e>", "two": value})
    assert remembered == ["<a%2Fb c/d%26e>", value]
    assert mask_secret(masked["one"]) == "<***>"
    (key,) = secret_keys(masked["two"])
    assert restore_secret(masked["two"], {key: value}) == value


ODD = "O'Br\"ién€\\p 1"


@pytest.mark.parametrize(
    "text",
    [
        repr(ODD.encode()),
        ascii(ODD),
        repr(ODD),
        shlex.quote(ODD),
        ODD.replace("'", "'\\''"),
        ODD.replace("'", "''"),
        ODD.replace('"', '""'),
        html.escape(ODD),
        ODD.replace("'", "&apos;"),
        quote(quote(quote(ODD))),
    ],
)
def test_a_secret_is_found_where_a_language_quotes_it(text: str) -> None:
    masked = masker_of(ODD).mask_text(f"select {text};")
    assert masked.replace("'", "").replace('"', "").replace("b", "") == "select ***;"


def test_a_secret_of_nothing_but_quotes_is_looked_for_in_no_time() -> None:
    masker = masker_of("'" * 60, '"' * 60, "\\" * 60)
    for mark in ("'", '"', "\\"):
        assert masker.mask_text(mark * 59 + "x" + mark * 60) == mark * 59 + "x***"


LONG = "tok_" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789" * 4
"""Longer than the base64 of a line."""


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", "x" * 45])
@pytest.mark.parametrize("secret", [SECRET, LONG])
def test_base64_of_a_secret_is_masked_in_every_line_of_it(secret: str, before: str) -> None:
    masker = masker_of(secret)
    text = base64.encodebytes((before + secret + " and more of it").encode()).decode()
    masked = masker.mask_text(text)
    assert not secret_forms_in(masked.replace("\n", "").encode(), (secret,))
    assert masked.count("***") == len(text.splitlines())
    assert [masker.mask_text(line) for line in text.splitlines()] == masked.splitlines()
    (value,) = masker.mask_value([{"body": json.dumps(text)}])
    assert is_secret(value["body"])


def test_what_looks_like_base64_stays() -> None:
    masker = masker_of(LONG, SECRET)
    text = "someWord/other_word " + base64.b64encode(b"nothing of it" * 20).decode()
    assert masker.mask_text(text) == text


def test_the_newest_value_of_a_credential_is_the_one_that_can_be_had_again() -> None:
    remembered: list[Any] = []

    def remember(value: Any) -> SecretOrigin:
        remembered.append(value)
        return SecretOrigin("text", execution="x", number=len(remembered))

    masker = Masker(remember)
    for old, new in (("first-token", "second-token"), ("abc", "def"), (1111, 2222)):
        masker.add(old, ORIGIN)
        masker.add(new, ORIGIN)
        assert masker.mask_value([new]) == [secret_marker(ORIGIN)]
        (before,) = masker.mask_value([old])
        assert mask_secret(before) == "***"
        assert remembered.pop() == old


def test_short_secrets_are_masked_only_where_they_are_whole_values() -> None:
    masker = Masker()
    assert not masker.add("abc", ORIGIN)
    assert masker.mask_value(["abc", "abcd", {"abc": "x abc"}]) == [
        secret_marker(ORIGIN),
        "abcd",
        {"abc": "x abc"},
    ]
    assert masker.mask_text("abc") == "***"
    assert masker.mask_text("x abc") == "x abc"


def test_what_was_cut_off_is_masked_as_far_as_it_is_there() -> None:
    masker = masker_of("abcdefghijkl")
    much = "x" * TRUNCATION_LENGTH
    for text, seen in (
        (f"{much}abcdefghijk", f"{much}***"),
        ("x abcdef… y", "x ***… y"),
        (f"ghijkl{much}", f"***{much}"),
        (f"{much}abcdefgh … 9 bytes left out", f"{much}*** … 9 bytes left out"),
        (f"{much}abcde", f"{much}abcde"),
        ("abcdefgh and ghijkl", "abcdefgh and ghijkl"),
        ("ghijkl", "ghijkl"),
    ):
        assert masker.mask_text(text) == seen
        (masked,) = masker.mask_value([text])
        assert (mask_secret(masked) if is_secret(masked) else masked) == seen


def test_marks_of_others_say_where_a_text_was_cut_too() -> None:
    masker = masker_of("abcdefghijkl")
    for text, seen in (
        ("LINE 1: abcdefghi...", "LINE 1: ***..."),
        ("LINE 1: ...ghijkl' FROM", "LINE 1: ...***' FROM"),
        ("LINE 1: ...cdefghij...\n ^", "LINE 1: ...***...\n ^"),
        ("x abcdefg [...] ghijkl y", "x *** [...] *** y"),
        ("x…\nfghijkl y", "x…\n*** y"),
        ("abc... def", "abc... def"),
        ("...bcdef...", "...bcdef..."),
        ("cdefghij... y", "cdefghij... y"),
    ):
        assert masker.mask_text(text) == seen
        (masked,) = masker.mask_value([text])
        assert (mask_secret(masked) if is_secret(masked) else masked) == seen


def test_an_excerpt_may_be_cut_at_its_ends() -> None:
    masker = masker_of("abcdefghijkl")
    for text, seen in (
        ("no abcdefgh", "no ***"),
        ("ghijkl: no", "***: no"),
        ("cdefghij", "***"),
        ("cdefghij... y", "***... y"),
        ("abcde", "abcde"),
        ("x abcdefgh y", "x abcdefgh y"),
    ):
        assert masker.mask_excerpt(text) == seen


def test_a_cut_across_a_secret_moves_to_its_end() -> None:
    masker = masker_of("abcdefghijkl")
    text = "xx abcdefghijkl yy"
    assert [masker.end_of_secret(text, at) for at in (0, 2, 3, 4, 14, 15, 16)] == [0, 2, 3, 15, 15, 15, 16]


@pytest.mark.parametrize("write", [json.dumps, quote, repr])
def test_what_was_cut_off_is_masked_in_other_forms_too(write: Callable[[str], str]) -> None:
    secret = 'ab"c/d é"f&g%h+i"j'
    masker = masker_of(secret)
    much, written = "x" * TRUNCATION_LENGTH, write(secret).strip("'\"")
    for at in range(len(write(secret[:6]).strip("'\"")), len(written)):
        assert masker.mask_text(much + written[:at]) == f"{much}***"
    for at in (written.index("c"), written.index("g")):
        assert masker.mask_text(written[at:] + much) == f"***{much}"


def test_numbers_are_masked_as_values_and_in_texts() -> None:
    masker = masker_of(12345678, 42, True)
    masked = masker.mask_value([12345678, 42, 1, True, "pin 12345678"])
    assert [is_secret(item) for item in masked] == [True, False, False, False, True]
    masker = masker_of(1234)
    masked = masker.mask_value([1234, "1234", "pin 1234", 12345])
    assert [is_secret(item) for item in masked] == [True, True, False, False]
    assert [restore_secret(item, dict.fromkeys(secret_keys(item), 1234)) for item in masked[:2]] == [
        1234,
        "1234",
    ]


def test_the_lines_of_a_key_are_masked_one_by_one() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END KEY-----"
    masker = masker_of(pem)
    assert masker.mask_text(f"key: {pem}") == "key: ***"
    assert masker.mask_text("> MIIEvQIBADANBgkqhkiG9w0BAQEFAASC") == "> ***"
    assert masker.mask_text("-----BEGIN KEY-----") == "-----BEGIN KEY-----"
    (masked,) = masker.mask_value(["> MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"])
    assert restore_secret(masked, dict.fromkeys(secret_keys(masked), pem)).endswith("BAQEFAASC")


def test_references_and_what_is_masked_already_stay() -> None:
    masker = masker_of("secret-key")
    stored = StoredReference({"$noetl": "ref", "key": "x/1", "media_type": "text/plain"})
    marker = secret_marker(SecretOrigin("secret-key"))
    assert masker.mask_value({"a": stored, "b": marker, "c": "secret-key"})["a"] is stored
    assert masker.mask_value({"b": marker, "c": "secret-key"})["b"] is marker


def test_user_data_that_looks_like_a_marker_is_masked_as_any_other() -> None:
    masker = masker_of("secret-key")
    masked = masker.mask_value({"$noetl": "secret", "parts": ["secret-key"]})
    assert "secret-key" not in json.dumps(escape(masked))


def test_what_tasks_gave_is_forgotten_in_the_end() -> None:
    masker = Masker()
    for number in range(MAX_LEARNED + 1):
        masker.learn({"token": f"token-{number:06}"}, SecretOrigin("login", execution="x", number=number + 1))
    assert masker.mask_text("token-000000") == "token-000000"
    assert masker.mask_text(f"token-{MAX_LEARNED:06}") == "***"


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


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("https://u:p%2Fw@h/", "p/w"),
        ("postgresql://h/db?user=u&password=p%2Fw&x=1", "p/w"),
        ("host=h password=p&w user=u", "p&w"),
        (r"host=h password = 'it\'s mine' user=u", "it's mine"),
        ("Server=h;Password=pw;Uid=u", "pw"),
        ("https://[h/", None),
        ("host=h passwords=3", None),
    ],
)
def test_a_password_inside_of_a_connection_is_a_secret_of_its_own(text: str, password: str | None) -> None:
    secrets = dict(secrets_of({"url": text}))
    assert secrets.get(("url", "password")) == password

"""Whatever is cut off a text, nothing of a secret is left at the cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.credentials.masker import Masker
from noetl.model.secret import SecretOrigin
from noetl.ports.tool import NO_SECRETS
from noetl.tools.host.bounded_text import (
    MARGIN,
    readable_beginning,
    shorten_middle,
    shorten_text,
    text_preview,
)
from noetl.tools.process.log_lines import MAX_LINE, LogLines

SECRET = "QZJ4/WVK8 PYX2"


@pytest.fixture(scope="module")
def masker() -> Masker:
    masker = Masker()
    masker.add(SECRET, SecretOrigin("s", ("value",)))
    return masker


def assert_clean(text: str) -> None:
    assert not set(text) & set(SECRET) - {" "}, text


@given(before=st.integers(0, 90), after=st.integers(0, 90), limit=st.integers(20, 60))
def test_nothing_of_a_secret_is_left(masker: Masker, before: int, after: int, limit: int) -> None:
    text = "é" * before + SECRET + "ö" * after
    assert_clean(shorten_text(text, limit, masker))
    assert_clean(shorten_middle(text, limit, masker).replace("characters left out", "").translate(NO_DIGITS))
    assert_clean(readable_beginning(text.encode(), limit, masker))
    assert_clean(text_preview(text.encode(), limit, masker))
    logged: list[str] = []
    lines = LogLines(logged.append, masker)
    lines.feed(
        b"x" * (MAX_LINE - limit)
        + text.encode()
        + b"z" * MAX_LINE
        + b"\nrest "
        + text.encode()[: before * 2 + 9]
    )
    lines.finish()
    long_line, last_line = logged
    assert_clean(long_line.partition(" … ")[0])
    assert_clean(last_line)


NO_DIGITS = str.maketrans("", "", "0123456789")


def test_what_is_short_enough_stays_as_it_is() -> None:
    assert shorten_text("a b", 3, NO_SECRETS) == shorten_middle("a b", 3, NO_SECRETS) == "a b"
    assert shorten_text(" a\n\tb ", 9, NO_SECRETS) == "a b"
    assert shorten_text("abcd", 3, NO_SECRETS) == "ab…"
    assert text_preview(b"abc", 3, NO_SECRETS) == readable_beginning(b"abcd", 3, NO_SECRETS) == "abc"
    assert text_preview("abcä".encode(), 4, NO_SECRETS) == "abc…"
    assert text_preview(b"abc", 0, NO_SECRETS) == ""
    middle = shorten_middle("a" * 50 + "b" * 50, 20, NO_SECRETS)
    assert middle == "aaaaaaaaaa\n… 80 characters left out …\nbbbbbbbbbb"


def test_a_text_that_was_longer_says_so_though_masking_made_it_short() -> None:
    secret = "".join(f"{number:05x}" for number in range(MARGIN // 4))
    masker = Masker()
    masker.add(secret, SecretOrigin("s", ("value",)))
    assert shorten_text(f"a {secret}", 200, masker) == "a ***…"
    assert shorten_text(f"a {secret[: 200 + MARGIN]}", 200, masker) == "a ***…"

"""What a masker does not look at would not have been masked."""

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noetl.credentials.masker import Masker
from noetl.credentials.secret_pattern import (
    _RUN,
    TRUNCATION_LENGTH,
    SecretPattern,
    SplitBase64,
    _continues,
    cut_pieces,
)
from noetl.model.secret import SecretOrigin

SECRETS = ('T0p/Secr+t "Wört" \\1&?x=%', "plainMarkedSecret42", "tok_" + "AbCdEfGhIjKl0123456789" * 4, "abc")
LONG = "x" * TRUNCATION_LENGTH
NUMBERS = (1234567, 1234567.0, 42, 87654321, 87654321.0, 10**16, 1e16, 7654.25, 2**60, float(2**60))
SECRET_NUMBERS = (1234567, 87654321.0, 1e16, 7654.25, 2**60)


def spellings(secret: str) -> list[str]:
    """As it is written here and there, whole and in part."""
    packed = [base64.b64encode(f"{before}{secret}".encode()).decode() for before in ("", "u", "us")]
    return [
        secret,
        json.dumps(secret),
        json.dumps(json.dumps(secret, ensure_ascii=False)),
        quote(secret),
        quote_plus(secret),
        repr(secret),
        *packed,
        *[text.replace("+", "-").replace("/", "_").rstrip("=") for text in packed],
        base64.encodebytes(f"before {secret} after".encode()).decode(),
        f"{secret[:-1]}…",
        f"{secret[:-1]}...",
        f"... {secret[1:]}",
        f"...{secret[1:-1]}...",
        f"…{secret[1:-1]}",
        LONG + secret[:-1],
        secret[1:] + LONG,
        packed[0][:-6],
        packed[0][6:],
    ]


PIECES = st.sampled_from([text for secret in SECRETS for text in spellings(secret)]) | st.text(max_size=5)
TEXTS = st.lists(PIECES, max_size=3).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(NUMBERS) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def masker() -> Masker:
    masker = Masker()
    for number, secret in enumerate((*SECRETS, *SECRET_NUMBERS)):
        masker.add(secret, SecretOrigin(f"s{number}", ("value",)))
    return masker


@given(value=VALUES)
@example(value=["\x0c" + spellings(SECRETS[1])[-1]])
@example(value=["\x08" + spellings(SECRETS[1])[-1], "\x01" + spellings(SECRETS[2])[-1]])
@example(value=[87654321, 1234567.0, 10**16, float(2**60)])
@example(value={'T0p/Secr+t "Wört" \\1&?x=%': [1234567, "abc"]})
def test_a_value_is_masked_as_if_all_of_it_were_looked_at(masker: Masker, value: Any) -> None:
    assert masker.mask_value(value) == masker._mask(value, in_log=False)
    assert masker.mask_recorded(value) == masker._mask(value, in_log=True)
    assert masker.mask_for_display(value) == masker._mask_texts(value)


@pytest.mark.parametrize("secret", SECRETS[:3])
@given(before=TEXTS, after=TEXTS)
def test_where_an_expression_finds_a_secret_the_plain_search_does(
    secret: str, before: str, after: str
) -> None:
    pattern = SecretPattern(secret, SecretOrigin("s"))
    for spelling in spellings(secret):
        text = before + spelling + after
        if pattern.regex.search(text):
            assert pattern.anchor in text
        if any(core.search(text) for core in pattern.core_patterns):
            assert any(mark in text for mark in pattern.landmarks)
        if pattern.anchor in text or any(pattern.truncated_spans(text, cut_pieces(text))):
            assert pattern.may_be_in(text)


@given(text=TEXTS)
def test_parts_of_base64_are_found_as_if_every_run_were_compared(text: str) -> None:
    cores = [core for secret in SECRETS[:3] for core in SecretPattern(secret, SecretOrigin("s")).cores]
    split = SplitBase64(cores)
    slow = []
    for match in _RUN.finditer(text.replace("-", "+").replace("_", "/")):
        start, run = match.start(), match[0]
        if run[0] in "nrt" and text[start - 1 : start] == "\\":
            start, run = start + 1, run[1:]
        if any(_continues(run, core) or (len(run) > 16 and len(core) > 60 and run in core) for core in cores):
            slow.append((start, match.end()))
    assert list(split.spans(text)) == slow

"""Keychain entries have the fields of their kind."""

import pytest

import noetl
from noetl.dsl.document.playbook_codec import decode_playbook, encode_playbook

DOCUMENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: n, path: p }}
keychain:
  - {entry}
workflow:
  - step: start
    tool: {{ kind: noop }}
"""


def entry_problems(entry: str) -> list[tuple[int, int, str]]:
    problems = noetl.validate(DOCUMENT.format(entry=entry))
    return [(problem.line, problem.column, problem.code) for problem in problems]


@pytest.mark.parametrize(
    "entry",
    [
        "{ name: a, kind: env, env: TOKEN }",
        "{ name: a, kind: file, path: token.json, format: json }",
        "{ name: a, kind: static, data: { user: x } }",
        "{ name: a, kind: bearer, env: TOKEN, desc: for the orders }",
        "{ name: a, kind: basic, username: ada, path: password }",
        "{ name: a, kind: api_key, env: KEY, header: X-Key }",
        "{ name: a, kind: oauth2, token_url: 'https://a/t', client_id: c, env: S, scope: [r, w] }",
        "{ name: a, kind: vault, mount: kv, path: db/main, field: password, version: 3 }",
        "{ name: a, kind: secret_manager, provider: gcp, project: p, secret: s }",
        "{ name: a, kind: postgres_credential }",
        "{ name: a, kind: postgres_credential, db_host: h, db_port: 5432 }",
        "{ name: a, kind: vault }",
        "{ name: a, kind: credential, credential: kept }",
        "{ name: a, kind: google_id_token, audience: 'https://a', path: key.json }",
        "{ name: a, kind: env, env: '{{ workload.name }}' }",
        "{ name: a, kind: vault, version: '{{ workload.version }}' }",
        "{ name: a, kind: static, data: { b: ['{{ workload.name }}'] } }",
        "{ name: a, kind: postgres_credential, host: '{{ region }}.example.com' }",
    ],
)
def test_the_kinds_and_their_fields(entry: str) -> None:
    assert entry_problems(entry) == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{ name: a, kind: env, evn: TOKEN }", (5, 27, "unknown-key")),
        ("{ name: a, kind: enviroment }", (5, 22, "bad-value")),
        ("{ name: a, kind: vault, version: new }", (5, 38, "wrong-type")),
        ("{ name: a, kind: basic, password: 123 }", (5, 39, "wrong-type")),
        ("{ kind: env }", (5, 5, "missing-key")),
        ("{ name: a }", (5, 5, "missing-key")),
        ("{ name: 1a, kind: env }", (5, 13, "bad-name")),
        ("{ name: '{{ a }}', kind: env }", (5, 13, "bad-name")),
        ("{ name: a, kind: '{{ workload.kind }}' }", (5, 22, "bad-value")),
        ("{ name: a, kind: env, env: '{{ workload.name' }", (5, 33, "expression-syntax")),
        ("{ name: a, kind: env, env: 'x-{{ ctx.name }}' }", (5, 38, "namespace-scope")),
        ("{ name: a, kind: env, env: '{{ keychain.b.value }}' }", (5, 36, "unknown-keychain")),
        ("{ name: a, kind: env, env: '{{ keychain.a.value }}' }", (5, 36, "keychain-order")),
        ("{ name: a, kind: env, env: '{{ keychain[workload.b].value }}' }", (5, 36, "keychain-order")),
        ("{ name: a, kind: google_id_token, env: A, path: b }", (5, 47, "conflicting-keys")),
        ("{ name: a, kind: bearer, env: A, path: b }", (5, 38, "conflicting-keys")),
        ("{ name: a, kind: basic, username: u, password: p, env: A }", (5, 55, "conflicting-keys")),
    ],
)
def test_what_does_not_fit_is_said_at_its_place(entry: str, problem: tuple[int, int, str]) -> None:
    assert entry_problems(entry) == [problem]


def test_the_playbook_has_the_fields() -> None:
    entry = noetl.load(DOCUMENT.format(entry="{ name: a, kind: env, env: TOKEN, desc: d }")).keychain["a"]
    assert (entry.kind, entry.fields) == ("env", {"env": "TOKEN"})


def test_an_entry_reads_only_those_before_it() -> None:
    late = "{ name: a, kind: env, env: '{{ keychain.b.value }}' }\n  - { name: b, kind: env }"
    (problem,) = noetl.validate(DOCUMENT.format(entry=late))
    assert (problem.line, problem.column, problem.code) == (5, 36, "keychain-order")
    assert problem.message == "the entry `a` reads `b`, which comes after it"
    assert problem.hint == "declare `b` before `a`"


def test_a_cycle_of_entries_is_called_one() -> None:
    entries = [
        "{ name: a, kind: env, env: '{{ keychain.c.value }}' }",
        "{ name: b, kind: env, env: '{{ keychain.a.value }}' }",
        "{ name: c, kind: env, env: '{{ keychain.b.value }}' }",
    ]
    (problem,) = noetl.validate(DOCUMENT.format(entry="\n  - ".join(entries)))
    assert (problem.line, problem.column, problem.code) == (5, 36, "keychain-order")
    assert problem.message == "the entry `a` reads `c`, and that reads this one"


def test_the_expressions_of_an_entry_outlive_its_storage() -> None:
    playbook = noetl.load(DOCUMENT.format(entry="{ name: a, kind: env, env: 'X_{{ workload.x }}', desc: d }"))
    entry = decode_playbook(encode_playbook(playbook)).keychain["a"]
    assert (entry.fields, list(entry.templates)) == ({}, ["env"])
    assert entry == playbook.keychain["a"]

"""What an expression reads, found without evaluating it."""

import pytest

from noetl.expr.expression import parse
from noetl.expr.use import Use


def paths(source: str) -> list[str]:
    return [".".join(use.path) for use in parse(source).uses]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ ctx.a.b }}", ["ctx.a.b"]),
        ("{{ a.b['c'].d }}", ["a.b.c.d"]),
        ("{{ a.b[0].c }}", ["a.b"]),
        ("{{ a[b.c].d }}", ["b.c", "a"]),
        ("{{ a.b[1:n] }}", ["n", "a.b"]),
        ("{{ a.b.upper() }}", ["a.b"]),
        ("{{ (a | first).b }}", ["a"]),
        ("{{ a.b | join(sep) }}", ["a.b", "sep"]),
        ("{{ x is divisibleby(n) }}", ["x", "n"]),
        ("{{ {k: v, 'c': [w]} }}", ["k", "v", "w"]),
        ("{{ a if b else c }}", ["b", "a", "c"]),
        ("{{ range(n) }} {{ now() }} {{ dict(a=b) }}", ["n", "b"]),
        ("{{ true and 1 == none }}", []),
        ("{{ range }}", ["range"]),
        ("text", []),
        ("{% set a = b %}{{ a.x }}", ["b"]),
        ("{{ a }}{% set a = 1 %}{{ a }}", ["a"]),
        ("{% for a, b in xs %}{{ a.x ~ b ~ c ~ loop.index }}{% endfor %}{{ a }}", ["xs", "c", "a"]),
        (
            "{% for a in xs if a > m %}{% set y = a %}{% else %}{{ e }}{% endfor %}{{ y }}",
            ["xs", "m", "e", "y"],
        ),
        ("{% if c %}{% set v = 1 %}{% endif %}{{ v }}", ["c", "v"]),
        ("{% if c %}{% set v = 1 %}{% else %}{% set v = 2 %}{% endif %}{{ v }}", ["c"]),
        ("{% if a %}{{ b }}{% elif c %}{{ d }}{% else %}{{ e }}{% endif %}", ["a", "b", "c", "d", "e"]),
    ],
)
def test_uses_are_free_names_with_their_constant_keys(source: str, expected: list[str]) -> None:
    assert paths(source) == expected


@pytest.mark.parametrize(
    ("source", "optional"),
    [
        ("{{ x }}", []),
        ("{{ x | default(y) }}", ["x"]),
        ("{{ x.a.b | d(1) }}", ["x.a.b"]),
        ("{{ x[i].a | d(1) }}", ["x"]),
        ("{{ (x + 1) | d(1) }}", []),
        ("{{ x is defined }}", ["x"]),
        ("{{ x is undefined or x.y }}", ["x", "x.y"]),
        ("{{ x is defined and x.y }}", ["x", "x.y"]),
        ("{{ x and x.y > 1 }}", ["x", "x.y"]),
        ("{{ x.y if x is defined else z }}", ["x", "x.y"]),
        ("{{ z if x is not defined else x.y }}", ["x", "x.y"]),
        ("{{ x or y }}", ["x"]),
        ("{{ not x }}", ["x"]),
        ("{{ not x or x.y == 1 }}", ["x", "x.y"]),
        ("{{ x.y and x.z }}", ["x.y"]),
        ("{{ x == 1 and y }}", []),
        ("{{ 1 if x else 2 }}", ["x"]),
        ("{% if x %}{{ x.y }}{% else %}{{ x.z }}{% endif %}", ["x", "x.y"]),
        ("{% for a in b if x is defined %}{{ x }}{% endfor %}{{ x }}", ["x", "x"]),
        ("{% if a %}1{% elif x is undefined %}2{% else %}{{ x }}{% endif %}", ["a", "x", "x"]),
        ("{{ (x and y) is defined and y }}", ["x", "y"]),
        ("{{ x[0].n | int > 3 and x }}", ["x"]),
    ],
)
def test_uses_whose_absence_is_provided_for_are_optional(source: str, optional: list[str]) -> None:
    assert [".".join(use.path) for use in parse(source).uses if use.optional] == optional


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ a.b | length }}", [True]),
        ("{{ a.b | count > 1 }}", [True]),
        ("{{ a | default([]) | length }}", [True]),
        ("{{ a | list | length }}", [False]),
        ("{{ a[0] | length }}", [False]),
        ("{{ a }}", [False]),
    ],
)
def test_it_is_known_when_only_a_length_is_asked(source: str, expected: list[bool]) -> None:
    assert [use.length_only for use in parse(source).uses] == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ name.a }}",
        "text {{- name }}",
        "\n\n  {{ 'x' ~\n name }}",
        "é{{ [1, name] }}",
        "{# c #}\r\n{% if name %}{% endif %}",
    ],
)
def test_offsets_point_at_the_name(source: str) -> None:
    (use,) = parse(source).uses
    assert source[use.offset :].startswith("name")


def test_a_use_is_a_plain_value() -> None:
    assert parse("{{ ctx.n }}").uses == (Use(("ctx", "n"), 3, False, False),)

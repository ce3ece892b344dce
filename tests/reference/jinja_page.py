"""The page that says of every feature of Jinja2 whether expressions have it, made from Jinja2's own lists."""

from collections.abc import Iterable, Mapping

import jinja2.ext
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.ext import Extension
from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.parser import _statement_keywords
from jinja2.runtime import LoopContext
from jinja2.tests import TESTS as DEFAULT_TESTS

from noetl.expr.language.absent_features import (
    ABSENT_FILTERS,
    ABSENT_FUNCTIONS,
    ABSENT_METHODS,
    ABSENT_STATEMENTS,
    ABSENT_SYNTAX,
    ABSENT_TESTS,
)
from noetl.expr.language.parser import STATEMENTS
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import FUNCTIONS
from noetl.expr.library.methods import METHODS
from noetl.expr.library.tests import TESTS
from noetl.expr.runtime.limits import MAX_BLOCKS, MAX_MACRO_DEPTH

JINJA_STATEMENTS = sorted({*_statement_keywords, "call", "filter", "raw"})
"""Its parser names two of them apart, and `raw` is its lexer's."""
JINJA_TAGS = sorted(
    tag
    for extension in {value for value in vars(jinja2.ext).values() if isinstance(value, type)}
    if issubclass(extension, Extension)
    for tag in extension.tags
)
"""The statements of the extensions that come with it."""
JINJA_METHODS: dict[str, list[str]] = {
    "text": sorted(name for name in dir(str) if not name.startswith("_")),
    "mapping": sorted(name for name in dir(dict) if not name.startswith("_")),
    "list": sorted(name for name in dir(list) if not name.startswith("_")),
    "loop": sorted(name for name, member in vars(LoopContext).items() if name[0] != "_" and callable(member)),
}
"""In Jinja2 these are whatever Python has. `loop`: its methods, not its fields."""
LOOP_FIELDS = sorted(
    {name for name, member in vars(LoopContext).items() if isinstance(member, property)}
    | {"depth0", "index0"}
)
SYNTAX = {
    "`+` `-` `*` `/` `//` `%` `**`": "`{{ 2 * a + 1 }}`",
    "`-a` `+a`": "`{{ -a }}`",
    "`==` `!=` `<` `<=` `>` `>=`, also in chains": "`{{ 1 < a <= 3 }}`",
    "`in`, `not in`": "`{{ a not in [1, 2] }}`",
    "`and` `or` `not`": "`{{ a and not b }}`",
    "`is`, `is not`": "`{{ a is not none }}`",
    "`a if b else c`": "`{{ a if b else c }}`",
    "`~`": "`{{ a ~ b }}`",
    "`|`": "`{{ a | default(1) }}`",
    "`a.b`, `a['b']`, `a[0]`": "`{{ a.b[0] | default(1) }}`",
    "`a[1:2]`": "`{{ 'abc'[1:2] }}`",
    "lists, tuples, mappings": "`{{ [1, (2, 3), {'a': 4}] }}`",
    "texts, numbers, `true`, `false`, `none`": "`{{ ['a' 'b', 1_000, 1.5e3, true, none] }}`",
    "calls with arguments by name": "`{{ dict(a=1) }}`",
    "comments": "`{# a #}`",
    "`{%-`, `-%}`, `{{-`, `-}}`, `{%+`": "`a {{- 1 -}} b`",
    "`{% for a, b in … if … %}`, `{% else %}`": "`{% for a, b in {}.items() if b %}{{ a }}{% else %}{% endfor %}`",
    "`{% elif %}`": "`{% if a %}{% elif b %}{% endif %}`",
    "`{% set a, b = … %}`": "`{% set a, b = [1, 2] %}`",
    "`{% set a %}…{% endset %}`, with filters": "`{% set a | upper %}b{% endset %}`",
    "`{% set n.a = … %}` of a namespace": "`{% set n = namespace() %}{% set n.a = 1 %}`",
    "`{% call(a) m() %}` and `caller(…)`": "`{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}`",
    "`varargs`, `kwargs` in macros": "`{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, a=2) }}`",
}
"""Syntax that there is, with an example that a test reads."""

_NOTES: dict[str, str] = {
    "macro": f"gives text; called after it was defined, at most {MAX_MACRO_DEPTH} deep, each call charged",
    "for": f"statements stand at most {MAX_BLOCKS} deep in one another; no `recursive`",
    "filter batch": "gives lists at once, as all filters do",
    "filter escape": "the characters of `html.escape`",
    "filter forceescape": "the same as `escape`",
    "filter format": "fields of at most 1,000 characters, no `*`",
    "filter random": "the choice belongs to the decision: `verify` and a resumed run get the same one",
    "filter safe": "text: nothing is escaped by itself",
    "filter tojson": "plain JSON, not escaped for HTML; the same as `to_json`",
    "filter truncate": "no `leeway`",
    "method format": "`{}`, `{0}`, `{name}` with a format; no keys or items of a value",
    "method splitlines": "no `keepends`",
}
"""What is different here."""


def jinja_page() -> str:
    lines = [
        "# Jinja2, feature by feature",
        "",
        "Expressions are Jinja2. This page goes through all that Jinja2 has: statements, syntax, filters, tests,",
        "functions, methods and the extensions that come with it. What is missing is missing for one of three reasons: a",
        "string of a playbook stands alone (no files, blocks or imports), its values are data that do not change, or the",
        "work could not be charged before it is done. The error says which. What there is beyond Jinja2, and how things",
        "are called, is on the page about [expressions](expressions.md).",
        "",
    ]
    lines += _table(
        "Statements", "statement", _rows(JINJA_STATEMENTS, {*STATEMENTS, "raw"}, ABSENT_STATEMENTS, "")
    )
    lines += [
        "## Operators and other syntax",
        "",
        "| syntax | here | example, or why not |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {_cell(name)} | yes | {_cell(example)} |" for name, example in SYNTAX.items()]
    lines += [f"| {_cell(name)} | no | {_cell(reason)} |" for name, reason in ABSENT_SYNTAX.items()]
    lines += [f"| fields of `loop`: {', '.join(f'`{field}`' for field in LOOP_FIELDS)} | yes | |", ""]
    lines += _table("Filters", "filter", _rows(sorted(DEFAULT_FILTERS), FILTERS, ABSENT_FILTERS, "filter "))
    lines += _table("Tests", "test", _rows(sorted(DEFAULT_TESTS), TESTS, ABSENT_TESTS, "test "))
    functions = sorted({*DEFAULT_NAMESPACE, "super"})
    lines += _table("Functions", "function", _rows(functions, FUNCTIONS, ABSENT_FUNCTIONS, "function "))
    for kind, names in JINJA_METHODS.items():
        title = {"text": "text", "mapping": "a mapping", "list": "a list", "loop": "`loop`"}[kind]
        rows = _rows(names, METHODS[kind], ABSENT_METHODS, "method ")  # type: ignore[index]  # a family
        lines += _table(f"Methods of {title}", "method", rows)
    lines += _table("Statements of extensions", "statement", _rows(JINJA_TAGS, (), ABSENT_STATEMENTS, ""))
    return "\n".join(lines[:-1]) + "\n"


def _rows(names: Iterable[str], present: Iterable[str], absent: Mapping[str, str], kind: str) -> list[str]:
    available = set(present)
    return [
        f"| `{_cell(name)}` | {'yes' if name in available else 'no'} | "
        f"{_cell(_NOTES.get(kind + name, '') if name in available else absent[name])} |"
        for name in names
    ]


def _table(title: str, kind: str, rows: list[str]) -> list[str]:
    return [f"## {title}", "", f"| {kind} | here | note, or why not |", "| --- | --- | --- |", *rows, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

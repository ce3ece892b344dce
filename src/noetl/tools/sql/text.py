"""SQL text as the server sees it: its statements, and the placeholders in them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from noetl.model.outcome import ToolError

_LINE_COMMENT = r"--[^\n]*"
_TEXT = r"'[^']*+(?:''[^']*+)*+(?:'|\Z)"
_NAME = r'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
_PERCENT = r"(?P<percent>%(?:\((?P<key>[^()]*)\)s(?!\w)|s(?!\w)|%))"
_REST = r"(?P<word>\w[\w$]*)|(?P<mark>[;()])"


class SqlDialect(NamedTuple):
    """How a database reads SQL. `native` is the placeholder that it numbers, `styles` those it is told of."""

    tokens: re.Pattern[str]
    nested_comments: bool
    native_placeholder: str
    placeholder_styles: str


POSTGRES = SqlDialect(
    tokens=re.compile(
        rf"{_LINE_COMMENT}|(?P<comment>/\*)"
        r"|[eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+(?:'|\Z)"
        rf"|{_TEXT}|{_NAME}"
        r"|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=tag)|\Z)"
        rf"|{_PERCENT}|\$(?P<number>\d+)|::|(?<![\w\])\"]):(?P<name>[^\W\d]\w*)|{_REST}",
        re.DOTALL,
    ),
    nested_comments=True,
    native_placeholder="$",
    placeholder_styles="`%s` or `$1` for a list, `%(name)s` or `:name` for a mapping",
)

SQLITE = SqlDialect(
    tokens=re.compile(
        rf"{_LINE_COMMENT}|(?P<comment>/\*)|{_TEXT}|{_NAME}"
        r"|`[^`]*+(?:``[^`]*+)*+(?:`|\Z)|\[[^\]]*(?:\]|\Z)"
        rf"|{_PERCENT}|\?(?P<number>\d*)|[:@$](?P<name>[^\W\d]\w*)|{_REST}",
        re.DOTALL,
    ),
    nested_comments=False,
    native_placeholder="?",
    placeholder_styles="`?` or `?1` for a list, `:name` for a mapping",
)


class Placeholder(NamedTuple):
    """A placeholder: where it stands, and what it asks for: a name, a number from 1, or just the next."""

    start: int
    end: int
    style: str
    key: str | int | None


class Statement(NamedTuple):
    """One statement. `line` is where it begins in its text, `words` are its first four, in upper case."""

    text: str
    line: int
    words: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]
    returning: bool = False
    """Whether the word RETURNING is in it."""


def split_statements(text: str, dialect: SqlDialect) -> list[Statement]:
    """The statements of a text, in order, without the semicolons between them."""
    found = []
    scan = _Scan()
    start = 0
    for match in _tokens(text, dialect):
        if scan.take(match):
            found.append((start, match.start(), scan))
            start, scan = match.end(), _Scan()
    found.append((start, len(text), scan))
    return [_statement(text, *one) for one in found if one[2].began is not None]


class _Scan:
    """What is known of a statement while it is read. `depth` counts what a semicolon does not end."""

    def __init__(self) -> None:
        self.began: int | None = None
        self.words: list[str] = []
        self.slots: list[Placeholder] = []
        self.last = ""
        self.parentheses = 0
        self.body = 0
        self.returning = False

    def take(self, match: re.Match[str]) -> bool:
        """Reads a token; whether it ends the statement."""
        if match[0].startswith("--") or match.lastgroup == "comment":
            return False
        if match[0] == ";" and not self.parentheses and not self.body:
            return True
        if self.began is None:
            self.began = match.start()
        match match.lastgroup:
            case "word":
                self.word(match[0].upper())
            case "mark":
                self.parentheses += {"(": 1, ")": -1}.get(match[0], 0)
            case "percent" | "key" | "number" | "name":
                self.slots.append(_slot(match))
        return False

    @property
    def is_trigger(self) -> bool:
        return self.words[0] == "CREATE" and "TRIGGER" in self.words[:3]

    def word(self, word: str) -> None:
        if len(self.words) < 4:
            self.words.append(word)
        if self.body:
            self.body += {"CASE": 1, "END": -1}.get(word, 0)
        elif (word == "ATOMIC" and self.last == "BEGIN") or (word == "BEGIN" and self.is_trigger):
            self.body = 1
        self.returning = self.returning or word == "RETURNING"
        self.last = word


def _tokens(text: str, dialect: SqlDialect) -> Iterator[re.Match[str]]:
    place = 0
    while match := dialect.tokens.search(text, place):
        yield match
        place = match.end()
        if match.lastgroup == "comment":
            place = _after_comment(text, place, nested=dialect.nested_comments)


def _after_comment(text: str, place: int, *, nested: bool) -> int:
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, place):
        if mark[0] == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if not depth:
            return mark.end()
    return len(text)


def _slot(match: re.Match[str]) -> Placeholder:
    start, end = match.span()
    group = match.groupdict()
    if group["percent"]:
        if match[0] == "%%":
            return Placeholder(start, end, "%%", None)
        return Placeholder(start, end, "%(name)s" if group["key"] is not None else "%s", group["key"])
    if group["name"]:
        return Placeholder(start, end, f"{match[0][0]}name", group["name"])
    number = group["number"]
    return Placeholder(start, end, f"{match[0][0]}1" if number else "?", int(number) if number else None)


def _statement(text: str, start: int, end: int, scan: _Scan) -> Statement:
    assert scan.began is not None  # noqa: S101 -- others are left out
    begin = start + len(text[start : scan.began]) - len(text[start : scan.began].lstrip())
    return Statement(
        text=text[begin:end].rstrip(),
        line=text.count("\n", 0, begin) + 1,
        words=tuple(scan.words),
        placeholders=tuple(
            slot._replace(start=slot.start - begin, end=slot.end - begin) for slot in scan.slots
        ),
        returning=scan.returning,
    )


class BindPlan(NamedTuple):
    """A statement with the placeholders of its database, and what each of them asks for."""

    text: str
    keys: tuple[str | int, ...]
    """Names, or positions from 0."""

    def values(self, given: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        """The values in order. ToolError of kind `input` if one is not there."""
        try:
            return [given[key] for key in self.keys]  # type: ignore[index]  # the plan was made for it
        except KeyError as error:
            raise ToolError("input", f"no value is given for `{error.args[0]}`") from None
        except IndexError:
            wanted = 1 + max(key for key in self.keys if isinstance(key, int))
            message = f"the statement asks for {wanted} values, and there are {len(given)}"
            raise ToolError("input", message) from None


def plan_binding(statement: Statement, dialect: SqlDialect, *, named: bool, first: int = 0) -> BindPlan:
    """How to bind values to the statement: of a mapping by name, or of a list from position `first` on.

    ToolError of kind `input` if the statement is written for the other, or in several styles.
    """
    slots = [slot for slot in statement.placeholders if slot.style != "%%"]
    styles = sorted({slot.style for slot in slots})
    if len(styles) > 1:
        mixed = " and ".join(f"`{style}`" for style in styles)
        raise ToolError("input", f"the statement has the placeholders {mixed}: use one style")
    if slots and isinstance(slots[0].key, str) != named:
        given = "a mapping" if named else "a list"
        message = f"the statement has placeholders such as `{styles[0]}`, and the values are {given}"
        raise ToolError("input", f"{message}: use {dialect.placeholder_styles}")
    if not slots:
        return BindPlan(statement.text, ())
    undouble = styles[0].startswith("%")
    keys: dict[str | int, int] = {}
    parts, place = [], 0
    for slot in statement.placeholders:
        parts.append(statement.text[place : slot.start])
        place = slot.end
        if slot.style == "%%":
            parts.append("%" if undouble else "%%")
            continue
        key = _wanted(slot, first + len(keys))
        parts.append(f"{dialect.native_placeholder}{keys.setdefault(key, len(keys)) + 1}")
    return BindPlan("".join([*parts, statement.text[place:]]), tuple(keys))


def _wanted(slot: Placeholder, following: int) -> str | int:
    if slot.key is None:
        return following
    return slot.key if isinstance(slot.key, str) else slot.key - 1

"""SQL text as the server sees it: its statements, and the placeholders in them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from noetl.model.outcome import ToolError

# Possessive (`*+`): an unclosed quote in a long text shall not be tried again from each of its characters.
_LINE_COMMENT = r"(?P<line>--[^\n]*)"
_TEXT = r"'[^']*+(?:''[^']*+)*+(?:'|\Z)"
_NAME = r'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
_PERCENT = r"(?P<percent>%(?:\((?P<key>[^()]*)\)s(?!\w)|s(?!\w)|%))"
_WORD_OR_MARK = r"(?P<word>\w[\w$]*)|(?P<mark>[;()])"
_ESCAPED_TEXT = r"'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+(?:'|\Z)"
_TEMPORARY = {"TEMP", "TEMPORARY"}
_BLOCKS = {"IF", "LOOP", "WHILE", "REPEAT", "FOR"}
"""What `END` ends besides BEGIN and CASE. Only there they are told: as functions they have no end."""
_MYSQL_ROUTINE = re.compile(
    r"(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+(?:\s*@\s*\S+)?\s+)?(?:AGGREGATE\s+)?"
    r"(?:PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b",
    re.IGNORECASE,
)


class SqlDialect(NamedTuple):
    """How a database reads SQL.

    `native_placeholder` is what it takes itself, with `{}` for a number; without that, each asks for a value
    of its own. `placeholder_styles` names those that people may write, for messages. `opens_body` says
    whether a word, with the statement before it, begins a body of statements. `client_commands` are words
    that look like SQL in scripts, but are for a program that reads them.
    """

    tokens: re.Pattern[str]
    nested_comments: bool
    native_placeholder: str
    placeholder_styles: str
    opens_body: Callable[["_StatementScan", re.Match[str]], bool]
    client_commands: frozenset[str] = frozenset()


def _opens_standard_body(scan: "_StatementScan", match: re.Match[str]) -> bool:
    word = match[0].upper()
    return (word == "ATOMIC" and scan.last_word == "BEGIN") or (word == "BEGIN" and scan.is_trigger)


def _opens_mysql_body(scan: "_StatementScan", match: re.Match[str]) -> bool:
    word = match[0].upper()
    if word == "NOT":  # `BEGIN NOT ATOMIC`; BEGIN alone is a transaction
        return scan.last_word == "BEGIN"
    return word == "BEGIN" and _MYSQL_ROUTINE.match(match.string, scan.first_token or 0) is not None


def _opens_snowflake_body(scan: "_StatementScan", match: re.Match[str]) -> bool:
    word = match[0].upper()
    if word == "DECLARE":
        scan.declares = True
        return True
    return scan.last_word == "BEGIN" and word not in ("TRANSACTION", "WORK", "NAME")


POSTGRES = SqlDialect(
    tokens=re.compile(
        rf"{_LINE_COMMENT}|(?P<comment>/\*)"
        r"|[eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+(?:'|\Z)"
        rf"|{_TEXT}|{_NAME}"
        r"|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=tag)|\Z)"
        # Neither a cast `a::int` nor a slice `a[1:n]` has a placeholder in it.
        rf"|{_PERCENT}|\$(?P<number>\d+)|::|(?<![\w\])\"]):(?P<name>[^\W\d]\w*)|{_WORD_OR_MARK}",
        re.DOTALL,
    ),
    nested_comments=True,
    native_placeholder="${}",
    placeholder_styles="`%s` or `$1` for a list, `%(name)s` or `:name` for a mapping",
    opens_body=_opens_standard_body,
)

SQLITE = SqlDialect(
    tokens=re.compile(
        rf"{_LINE_COMMENT}|(?P<comment>/\*)|{_TEXT}|{_NAME}"
        r"|`[^`]*+(?:``[^`]*+)*+(?:`|\Z)|\[[^\]]*(?:\]|\Z)"
        rf"|{_PERCENT}|\?(?P<number>\d*)|[:@$](?P<name>[^\W\d]\w*)|{_WORD_OR_MARK}",
        re.DOTALL,
    ),
    nested_comments=False,
    native_placeholder="?{}",
    placeholder_styles="`?` or `?1` for a list, `:name` for a mapping",
    opens_body=_opens_standard_body,
)

MYSQL = SqlDialect(
    tokens=re.compile(
        r"(?P<line>--(?=\s|\Z)[^\n]*|#[^\n]*)"
        # What the server runs, though it looks like a comment.
        r"|/\*M?![^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|(?P<comment>/\*)"
        rf"|{_ESCAPED_TEXT}"
        r'|"[^"\\]*+(?:(?:""|\\.)[^"\\]*+)*+(?:"|\Z)|`[^`]*+(?:``[^`]*+)*+(?:`|\Z)'
        rf"|{_PERCENT}|\?(?P<number>)|(?<![\w\])`]):(?P<name>[^\W\d]\w*)|{_WORD_OR_MARK}",
        re.DOTALL,
    ),
    nested_comments=False,
    native_placeholder="?",
    placeholder_styles="`?` or `%s` for a list, `:name` or `%(name)s` for a mapping",
    opens_body=_opens_mysql_body,
    client_commands=frozenset({"DELIMITER"}),
)

SNOWFLAKE = SqlDialect(
    tokens=re.compile(
        r"(?P<line>--[^\n]*|//[^\n]*)|(?P<comment>/\*)"
        rf"|{_ESCAPED_TEXT}|{_NAME}|\$\$.*?(?:\$\$|\Z)|{_PERCENT}"
        # Neither a cast `a::int` nor a path `a:b` has a placeholder in it.
        r"|::|(?:\?|(?<![\w\])\"]):(?=\d))(?P<number>\d*)|(?<![\w\])\"]):(?P<name>[^\W\d]\w*)"
        rf"|{_WORD_OR_MARK}",
        re.DOTALL,
    ),
    nested_comments=False,
    native_placeholder="?",
    placeholder_styles="`?`, `:1` or `%s` for a list, `:name` or `%(name)s` for a mapping",
    opens_body=_opens_snowflake_body,
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
    has_body: bool = False
    """Whether statements of its own are in it: that of a routine, or a block that is run."""


def split_statements(text: str, dialect: SqlDialect) -> list[Statement]:
    """The statements of a text, in order, without the semicolons between them.

    ToolError of kind `input` if one is no SQL, but a command of a program that reads scripts.
    """
    spans = []
    scan = _StatementScan(dialect)
    start = 0
    for match in _tokens(text, dialect):
        if scan.add_token(match):
            spans.append((start, match.start(), scan))
            start, scan = match.end(), _StatementScan(dialect)
    spans.append((start, len(text), scan))
    statements = [_statement(text, *span) for span in spans if span[2].first_token is not None]
    for statement in statements:
        if not dialect.client_commands.isdisjoint(statement.words[:1]):
            message = f"line {statement.line}: `{statement.words[0]}` is a command of the client, not SQL"
            raise ToolError("input", f"{message}: leave it out, a body from BEGIN to END needs none")
    return statements


class _StatementScan:
    """What is known of a statement while it is read.

    In `parentheses` and in a `body` of statements of its own, a semicolon does not end it.
    """

    def __init__(self, dialect: SqlDialect) -> None:
        self.first_token: int | None = None
        self.words: list[str] = []
        self.placeholders: list[Placeholder] = []
        self.last_word = ""
        self.parentheses = 0
        self.body = 0
        self.has_body = False
        self.declares = False
        self.returning = False
        self._dialect = dialect

    def add_token(self, match: re.Match[str]) -> bool:
        """Reads a token; whether it ends the statement."""
        if match.lastgroup in ("line", "comment"):
            return False
        if match[0] == ";" and not self.parentheses and not self.body:
            return True
        if self.first_token is None:
            self.first_token = match.start()
        match match.lastgroup:
            case "word":
                self.add_word(match)
            case "mark":
                self.parentheses += {"(": 1, ")": -1}.get(match[0], 0)
                self.last_word = ""  # `END; IF` are two statements, `END IF` is one end
            case "percent" | "key" | "number" | "name":
                self.placeholders.append(_placeholder(match))
        return False

    @property
    def is_trigger(self) -> bool:
        """Whether it makes a trigger, and not a table or an index of that name."""
        words = self.words[:3]
        return words[0] == "CREATE" and "TRIGGER" in (words[1:2] if words[1] not in _TEMPORARY else words[2:])

    def add_word(self, match: re.Match[str]) -> None:
        word = match[0].upper()
        if len(self.words) < 4:
            self.words.append(word)
        if self.has_body:
            if match.string[match.start() - 1] not in ".@":  # no keyword, but a column or a variable
                self.body += self._depth(word)
        elif self._dialect.opens_body(self, match):
            self.has_body, self.body = True, 1
        self.returning = self.returning or word == "RETURNING"
        self.last_word = word

    def _depth(self, word: str) -> int:
        """How much deeper in blocks what follows a word of a body is."""
        if self.last_word == "END":
            return 1 if word in _BLOCKS else 0  # `END IF` ends no BEGIN; `END CASE` was counted at its END
        if word == "BEGIN" and self.declares:
            self.declares = False
            return 0
        return {"BEGIN": 1, "CASE": 1, "END": -1}.get(word, 0)


def _tokens(text: str, dialect: SqlDialect) -> Iterator[re.Match[str]]:
    offset = 0
    while match := dialect.tokens.search(text, offset):
        yield match
        offset = match.end()
        if match.lastgroup == "comment":
            # By hand: a regular expression cannot count how deep comments are nested.
            offset = _after_comment(text, offset, nested=dialect.nested_comments)


def _after_comment(text: str, offset: int, *, nested: bool) -> int:
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, offset):
        if mark[0] == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if not depth:
            return mark.end()
    return len(text)


def _placeholder(match: re.Match[str]) -> Placeholder:
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


def _statement(text: str, start: int, end: int, scan: _StatementScan) -> Statement:
    assert scan.first_token is not None  # noqa: S101 - statements without a token are left out
    before = text[start : scan.first_token]
    begin = start + len(before) - len(before.lstrip())  # where it may have a comment above it
    return Statement(
        text=text[begin:end].rstrip(),
        line=text.count("\n", 0, begin) + 1,
        words=tuple(scan.words),
        placeholders=tuple(
            placeholder._replace(start=placeholder.start - begin, end=placeholder.end - begin)
            for placeholder in scan.placeholders
        ),
        returning=scan.returning,
        has_body=scan.has_body,
    )


class BindPlan(NamedTuple):
    """A statement with the placeholders of its database, and what each of them asks for."""

    text: str
    keys: tuple[str | int, ...]
    """Names, or positions from 0."""

    def values(self, params: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        """The values in order. ToolError of kind `input` if one is not there."""
        try:
            return [params[key] for key in self.keys]  # type: ignore[index]  # the plan was made for its type
        except KeyError as error:
            raise ToolError("input", f"no value is given for `{error.args[0]}`") from None
        except IndexError:
            wanted = 1 + max(key for key in self.keys if isinstance(key, int))
            message = f"the statement asks for {wanted} values, and there are {len(params)}"
            raise ToolError("input", message) from None


def plan_binding(statement: Statement, dialect: SqlDialect, *, named: bool, first: int = 0) -> BindPlan:
    """How to bind values to the statement: of a mapping by name, or of a list from position `first` on.

    ToolError of kind `input` if the statement is written for the other, or in several styles.
    """
    bindable = [placeholder for placeholder in statement.placeholders if placeholder.style != "%%"]
    styles = sorted({placeholder.style for placeholder in bindable})
    if len(styles) > 1:
        mixed = " and ".join(f"`{style}`" for style in styles)
        raise ToolError("input", f"the statement has the placeholders {mixed}: use one style")
    if bindable and isinstance(bindable[0].key, str) != named:
        container = "a mapping" if named else "a list"
        message = f"the statement has placeholders such as `{styles[0]}`, and the values are {container}"
        raise ToolError("input", f"{message}: use {dialect.placeholder_styles}")
    if not bindable:
        return BindPlan(statement.text, ())
    # `%%` stands for `%` only beside `%s`, as drivers have it; in other styles it is what it says.
    undouble = styles[0].startswith("%")
    numbered = "{}" in dialect.native_placeholder
    keys: list[str | int] = []
    positions: dict[str | int, int] = {}
    parts, done = [], 0
    for placeholder in statement.placeholders:
        parts.append(statement.text[done : placeholder.start])
        done = placeholder.end
        if placeholder.style == "%%":
            parts.append("%" if undouble else "%%")
            continue
        key = _key_for(placeholder, following=first + len(keys))
        if not numbered or key not in positions:
            keys.append(key)
            positions[key] = len(keys)
        parts.append(dialect.native_placeholder.format(positions[key]))
    return BindPlan("".join([*parts, statement.text[done:]]), tuple(keys))


def _key_for(placeholder: Placeholder, *, following: int) -> str | int:
    if placeholder.key is None:
        return following
    return placeholder.key if isinstance(placeholder.key, str) else placeholder.key - 1

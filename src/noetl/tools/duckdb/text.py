"""SQL text as words and strings: what it mentions, and where it names files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<escape> [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) )
    | (?P<string> '(?:[^']|'')*(?:'|\Z) )
    | (?P<dollar> (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?:(?P=tag)|\Z) )
    | (?P<quoted> "(?:[^"]|"")*(?:"|\Z) )
    | (?P<word> [^\W\d]\w* )
    | (?P<other> [$:@]?\w+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_READERS = ("read_", "scan_", "parquet_", "sniff_", "glob")
"""How the functions begin whose first argument names files."""
_NO_TABLE = frozenset({"extract", "substring", "trim", "overlay", "position"})
"""Functions in which `from` is followed by no table."""
_ATTACHING = frozenset({"attach", "export", "import"})
_NOT_RELATIVE = re.compile(
    r"[A-Za-z][\w+.-]*:|:|/|~|\\|$|(?:dbname|host|hostaddr|port|user|password|service)\s*="
)
"""How a name begins that is no path, or no relative one: an address, or a connection string."""


class SqlToken(NamedTuple):
    """A piece of SQL that is no blank. `text` of a quoted name is without its quotes."""

    kind: str
    text: str
    start: int
    end: int


def sql_tokens(sql: str) -> Iterator[SqlToken]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        text = match.group()
        if kind == "quoted":
            text = text.strip('"').replace('""', '"')
        if kind and kind != "blank":
            yield SqlToken(kind, text, match.start(), match.end())


def names_in(sql: str) -> set[str]:
    """The words and quoted names of the text: all that could be the name of a table."""
    return {token.text for token in sql_tokens(sql) if token.kind in ("word", "quoted")}


def quote_literal(text: str) -> str:
    """The text as a string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def resolve_file_paths(sql: str, folder: Path) -> str:
    """The text with the relative paths of files that it names in `folder`.

    A file is named by a string where a table, the target of a COPY or an attached database stands, or
    by the first argument of a function that reads files.
    """
    # DuckDB's own `file_search_path` is for files that are read, not for those it writes or attaches.
    parts, done = [], 0
    for token in _file_names(sql):
        path = token.text[1:-1]
        if not _NOT_RELATIVE.match(path):
            parts += [sql[done : token.start], f"{quote_literal(str(folder))[:-1]}/{path}'"]
            done = token.end
    return "".join([*parts, sql[done:]]) if parts else sql


class _Context:
    """What stands before the next token of a text."""

    def __init__(self) -> None:
        self.verb = ""
        """The first word of the statement."""
        self.before = ("", "")
        """The last two words or signs."""
        self.brackets: list[tuple[str, str]] = []
        """Parentheses and brackets around, each with its function while its first argument lasts."""

    @property
    def names_file(self) -> bool:
        """Whether a string that stands here names a file."""
        function = self.brackets[-1][1] if self.brackets else ""
        earlier, word = self.before
        match word:
            case "from":
                return earlier != "distinct" and function not in _NO_TABLE
            case "join":
                return True
            case "to":
                return self.verb == "copy"
            case "attach" | "database" | "exists":
                return self.verb in _ATTACHING
            case "(" | "[" | ",":
                return function.startswith(_READERS)
        return False

    def add_token(self, token: SqlToken) -> None:
        text = token.text.lower() if token.kind == "word" else token.text
        if token.kind not in ("word", "other"):
            text = ""
        self.verb = self.verb or text
        match text:
            case "(":
                self.brackets.append(("(", self.before[1]))
            case "[":
                self.brackets.append(("[", self.brackets[-1][1] if self.brackets else ""))
            case ")" | "]":
                if self.brackets:
                    self.brackets.pop()
            case ",":
                if self.brackets and self.brackets[-1][0] == "(":
                    self.brackets[-1] = ("(", "")
            case ";":
                self.verb = ""
        self.before = (self.before[1], text)


def _file_names(sql: str) -> Iterator[SqlToken]:
    context = _Context()
    for token in sql_tokens(sql):
        if token.kind == "string" and context.names_file:
            yield token
        context.add_token(token)

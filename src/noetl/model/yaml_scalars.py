"""How one value is spelt in YAML, so that it reads as the same value everywhere."""

import re

from noetl.model.json import Json, ScalarValue

# Text that YAML 1.1 readers, still common, take for booleans and null.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# What would end or change plain text: flow indicators, a comment, a key, spaces that a reader folds.
_NOT_PLAIN = re.compile(r"[{}\[\],`]|: | #|:\Z|  | \Z")
_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0",
}  # fmt: skip


def yaml_scalar(value: ScalarValue) -> str:
    """The value on one line, plain where that is safe."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _is_plain(value) else yaml_quote(value)
    return repr(value)


def yaml_quote(text: str) -> str:
    """In double quotes; in single quotes where that spares escapes."""
    if text.isprintable():
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def yaml_block(text: str, indent: str) -> str | None:
    """The text as a `|` block with its lines at `indent`, or None where a block cannot hold it."""
    lines = text.removesuffix("\n").split("\n")
    if "\n" not in text or not lines[-1].strip():
        return None
    if not all(line.replace("\t", "").isprintable() for line in lines):
        return None
    first = next(line for line in lines if line)
    # A reader takes the blanks of the first line for the indent unless it is told.
    hint = "2" if first[0] in " \t" else ""
    chomp = "" if text.endswith("\n") else "-"
    return "\n".join([f"|{hint}{chomp}", *(indent + line if line else "" for line in lines)])


def yaml_flow_mapping(value: Json) -> str | None:
    """A small mapping of single values on one line, or None where it is no such thing."""
    if not isinstance(value, dict) or not value or len(value) > 5:
        return None
    pairs: list[str] = []
    for key, item in value.items():
        if isinstance(item, list | dict) or len(key) > 30 or _is_long(item):
            return None
        pairs.append(f"{_in_flow(key)}: {_in_flow(item)}")
    return "{ " + ", ".join(pairs) + " }"


def _in_flow(value: ScalarValue) -> str:
    # Old readers stumble over a plain `a:b` inside braces.
    return yaml_quote(value) if isinstance(value, str) and ":" in value else yaml_scalar(value)


def _is_long(value: Json) -> bool:
    return isinstance(value, str) and (len(value) > 60 or "\n" in value)


def _is_plain(text: str) -> bool:
    # Numbers, dates, signs, tags, anchors and directives all begin otherwise.
    if not text or not (text[0].isalpha() or text[0] in "_/"):
        return False
    return text.isprintable() and text.lower() not in _WORDS and not _NOT_PLAIN.search(text)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

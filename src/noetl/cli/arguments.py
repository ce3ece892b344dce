"""The words of a command line that hold values, or name files that do: text comes in, values go out."""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NoReturn

from noetl.cli.command_failure import CommandFailure
from noetl.model.normalisation import MAX_DEPTH, NotJson, normalise

MAX_BYTES = 64 * 1024 * 1024
"""What a workload or ctx may be long: larger data belongs into files that the playbook reads."""

_STDIN = "@-"
_EXCERPT_WIDTH = 60
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def read_argument(argument: str, option: str) -> str:
    """The argument itself, what is in FILE for `@FILE`, or standard input for `@-`. Raises CommandFailure."""
    if not argument.startswith("@"):
        return argument
    name = argument[1:]
    if argument == _STDIN:
        if sys.stdin is None:
            raise CommandFailure("unreadable", f"{option}: standard input is closed")
        return _decode(sys.stdin.buffer, f"{option}: standard input")
    if not name:
        raise CommandFailure(
            "unreadable", f"{option}: there is no name after the @", hint="@FILE, or @- for standard input"
        )
    try:
        with open(name, "rb") as file:
            return _decode(file, f"{option}: {name}")
    except OSError as error:
        hint = "@FILE names a file that holds JSON; without the @ the value itself is given"
        raise CommandFailure("unreadable", f"{option}: {name}: {error.strerror}", hint=hint) from None


def reads_stdin(argument: str | None) -> bool:
    return argument == _STDIN


def parse_mapping(text: str, option: str) -> dict[str, Any]:
    """The JSON mapping that an option was given. Raises CommandFailure, with the place of what is wrong."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        _fail(f"{option}: this is not JSON: {error.msg} ({at})", _hint(error))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        _fail(f"{option}: this is not JSON: {reason}")
    if not isinstance(value, dict):
        _fail(f"{option} takes a mapping, not {_json_excerpt(value)}", 'for example {"name": "World"}')
    _check_storable(value, option)
    return value


def apply_sets(below: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """`below` with each `a.b=value` laid over it, in order: mappings merge, all else is replaced.

    A value is JSON if it parses, else text. Raises CommandFailure.
    """
    values = dict(below)
    for assignment in assignments:
        name, path, text = _assignment(assignment)
        values = _set_at(values, path, parse_value(text), name)
    _check_storable(values, "--set")
    return values


def parse_value(text: str) -> Any:
    """The JSON value of a text, or the text itself if it is none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def parse_labels(words: Iterable[str]) -> dict[str, str]:
    """The labels that `--label k=v` gives; the last word on a label counts. Raises CommandFailure."""
    labels = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            _fail(
                f"--label {_text_excerpt(word)}: a name, `=` and a value are needed",
                "for example --label team=data",
            )
        labels[name.strip()] = value
    _check_storable(labels, "--label")
    return labels


def parse_seconds(text: str, option: str) -> float:
    """A time as a number of seconds, or with units: `90`, `1.5s`, `5m`, `1h30m`. Raises CommandFailure."""
    word = text.strip().lower()
    parts = _PART.findall(word)
    if _NUMBER.fullmatch(word):
        seconds = float(word)
    elif parts and "".join(number + unit for number, unit in parts) == word:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    else:
        _fail(
            f"{option}: {_text_excerpt(text)} is not a time",
            "seconds, or with a unit: 90, 1.5s, 5m, 1h30m, 2d",
        )
    if not 0 < seconds < 10**10:
        _fail(
            f"{option}: {_text_excerpt(text)} is not a time that can pass",
            "more than 0 seconds, less than 300 years",
        )
    return seconds


def _decode(file: BinaryIO, name: str) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CommandFailure("unreadable", f"{name} is longer than {MAX_BYTES // 1024**2} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandFailure("unreadable", f"{name} is not UTF-8 text (byte {error.start})") from None


def _assignment(word: str) -> tuple[str, list[str], str]:
    key, equals, text = word.partition("=")
    path = key.strip().split(".")
    if not equals:
        _fail(
            f"--set {_text_excerpt(word)}: there is no `=`",
            "for example --set name=World or --set server.port=8080",
        )
    if not all(path):
        _fail(
            f"--set {_text_excerpt(word)}: a key is empty",
            "keys are separated by one dot: --set server.port=8080",
        )
    if len(path) > MAX_DEPTH:
        _fail(f"--set {_text_excerpt(word)}: it leads deeper than {MAX_DEPTH} levels")
    return f"--set {key.strip()}", path, text


def _set_at(
    values: Mapping[str, Any], path: list[str], value: Any, name: str, depth: int = 1
) -> dict[str, Any]:
    key, merged = path[depth - 1], dict(values)
    before = values.get(key)
    if depth == len(path):
        merged[key] = _merge(before, value)
    elif key in values and not isinstance(before, dict):
        prefix = ".".join(path[:depth])
        _fail(
            f"{name}: `{prefix}` is {_json_excerpt(before)}, and nothing can be set below it",
            "give a mapping, or another key",
        )
    else:
        merged[key] = _set_at(before or {}, path, value, name, depth + 1)
    return merged


def _merge(before: Any, after: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    return {**before, **{key: _merge(before.get(key), value) for key, value in after.items()}}


def _check_storable(value: Any, option: str) -> None:
    """The log must be able to hold the value. Raises CommandFailure."""
    try:
        normalise(value)
    except NotJson as error:
        _fail(f"{option}: {error}")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON value")


def _hint(error: json.JSONDecodeError) -> str:
    if error.doc[:1] not in ("{", "["):
        return 'a mapping in JSON, for example {"name": "World"}, or @FILE for the content of a file'
    line = error.doc.splitlines()[error.lineno - 1] if error.doc else ""
    return f"near: {line[max(0, error.colno - 21) : error.colno + 19].strip()}"


def _json_excerpt(value: Any) -> str:
    return _text_excerpt(json.dumps(value, ensure_ascii=False))


def _text_excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT_WIDTH else text[: _EXCERPT_WIDTH - 1] + "…"


def _fail(message: str, hint: str = "") -> NoReturn:
    raise CommandFailure("argument", message, hint=hint)

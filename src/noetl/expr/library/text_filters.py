"""Filters over text and numbers."""

import base64
import binascii
import hashlib
import html
import json
import math
import pprint
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, quote_plus

import msgspec

from noetl.expr.library.methods import METHODS, replace_text
from noetl.expr.library.operators import charge_new_items
from noetl.expr.library.text_format import format_percent
from noetl.expr.runtime.conversion import render_text, to_json, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST, MAX_NUMERAL
from noetl.expr.runtime.marker import refuse_markers_in
from noetl.expr.runtime.truth import truthy
from noetl.model.errors import ExpressionError
from noetl.model.reference import escape, unescape

_INDENT_COST = 8
"""How many times longer JSON takes with indents."""
_PPRINT_COST = 3
"""How many times longer each level takes to print than to look at."""
_NO_ATTRIBUTE_NAME = re.compile(r"[\s/>=]")
_BYTE_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
_BINARY_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def _text(evaluation: Evaluation, value: object) -> str:
    """The value as text; what is text already was charged with the call."""
    return value if type(value) is str else render_text(value, evaluation.budget)


def _method_filter(name: str) -> Callable[..., object]:
    """A method of text as a filter on anything."""

    def call(evaluation: Evaluation, value: object, *args: object) -> object:
        return METHODS["text"][name](evaluation, _text(evaluation, value), *args)

    return call


def _replace(
    evaluation: Evaluation, value: object, old: object, new: object, count: int | None = None
) -> str:
    times = -1 if count is None else count
    return replace_text(
        evaluation, _text(evaluation, value), _text(evaluation, old), _text(evaluation, new), times
    )


def _center(evaluation: Evaluation, value: object, width: int = 80) -> object:
    return METHODS["text"]["center"](evaluation, _text(evaluation, value), width)


def _indent(
    evaluation: Evaluation, value: object, width: int | str = 4, first: object = None, blank: object = None
) -> str:
    """The text with its lines indented, the first and blank ones only if asked."""
    text = _text(evaluation, value)
    margin_length = len(width) if isinstance(width, str) else max(width, 0)
    evaluation.budget.charge_text(len(text) + (text.count("\n") + 1) * margin_length)
    margin = width if isinstance(width, str) else " " * width
    lines = text.split("\n")
    charge_new_items(evaluation, len(lines))
    indented = [margin + line if line or blank else line for line in lines]
    return "\n".join(indented if first else [lines[0], *indented[1:]])


def _truncate(
    evaluation: Evaluation, value: object, length: int = 255, killwords: object = None, end: str = "..."
) -> str:
    """At most `length` characters, cut between words unless `killwords` is set."""
    text = _text(evaluation, value)
    if len(text) <= length:
        return text
    beginning = text[: max(length - len(end), 0)]
    evaluation.budget.charge_text(len(beginning) + len(end))
    return (beginning if killwords else beginning.rsplit(" ", 1)[0]) + end


def _wordcount(evaluation: Evaluation, value: object) -> int:
    text = _text(evaluation, value)
    charge_new_items(evaluation, len(text) >> 1)
    return len(text.split())


def _escape(evaluation: Evaluation, value: object) -> str:
    text = _text(evaluation, value)
    evaluation.budget.charge_text(len(text) * 6)  # `"` becomes `&quot;`
    return html.escape(text)


def _xmlattr(evaluation: Evaluation, value: object, autospace: object = True) -> str:  # noqa: FBT002 - as Jinja has it
    """The keys and values as attributes of a tag, without those that are none."""
    if not isinstance(value, Mapping):
        raise ExpressionError(f"`xmlattr` needs a mapping, not {type_name(value)}")
    attributes: list[str] = []
    for key, item in value.items():
        if item is None:
            continue
        name = _text(evaluation, key)
        evaluation.budget.charge_text(len(name))
        if not name or _NO_ATTRIBUTE_NAME.search(name):
            raise ExpressionError(f"`{name[:100]}` is not the name of an attribute")
        attributes.append(f'{_escape(evaluation, name)}="{_escape(evaluation, item)}"')
    return (" " if autospace and attributes else "") + " ".join(attributes)


def _format(evaluation: Evaluation, value: object, *values: object, **named: object) -> str:
    """The text as a pattern, with `%s`, `%d`, `%(name)s` replaced."""
    if values and named:
        raise ExpressionError("`format` takes values in order or by name, not both")
    return format_percent(evaluation, _text(evaluation, value), values, named)


def _pprint(evaluation: Evaluation, value: object) -> str:
    """The value as Python prints it, long ones over several lines."""
    plain = to_json(value, evaluation.budget)
    refuse_markers_in(plain)
    # Each level is written once for itself and once within each level above it.
    for _ in range((2 + _depth(plain)) * _PPRINT_COST):
        evaluation.budget.measure(plain)
    text = pprint.pformat(unescape(plain))
    evaluation.budget.charge_text(len(text))
    return text


def _depth(value: object) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, parts), default=0)


def _file_size(_: Evaluation, value: object, binary: object = None) -> str:
    """A number of bytes for people."""
    size = _number("filesizeformat", value)
    base = 1024 if binary else 1000
    if size == 1:
        return "1 Byte"
    if size < base:
        return f"{int(size)} Bytes"
    units = _BINARY_UNITS if binary else _BYTE_UNITS
    power = next((index for index in range(len(units)) if size < base ** (index + 2)), len(units) - 1)
    return f"{size / base ** (power + 1):.1f} {units[power]}"


def _urlencode(evaluation: Evaluation, value: object) -> str:
    """Text quoted for a path, or a mapping or list of pairs as a query."""
    if isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else value
        return "&".join(
            f"{quote_plus(_text_to_quote(evaluation, key))}={quote_plus(_text_to_quote(evaluation, item))}"
            for key, item in pairs
        )
    return quote(_text_to_quote(evaluation, value), safe="/")


def _text_to_quote(evaluation: Evaluation, value: object) -> str:
    text = _text(evaluation, value)
    evaluation.budget.charge(CALL_COST)
    evaluation.budget.charge_text(len(text) * 12)  # four bytes, each written `%F0`
    return text


def _from_json(evaluation: Evaluation, value: object) -> object:
    if not isinstance(value, str):
        raise ExpressionError(f"`from_json` reads text, not {type_name(value)}")
    evaluation.budget.charge(len(value))
    try:
        return escape(msgspec.json.decode(value))
    except msgspec.DecodeError as error:
        raise ExpressionError(f"`from_json` cannot read the text: {error}") from None


def _to_json(evaluation: Evaluation, value: object, indent: int | None = None) -> str:
    if indent is not None and not 0 <= indent <= 8:
        raise ExpressionError("`to_json` indents by 0 to 8 blanks")
    plain = to_json(value, evaluation.budget)
    refuse_markers_in(plain)
    known = unescape(plain)
    if indent is not None:  # written by Python code
        for _ in range(_INDENT_COST):
            evaluation.budget.measure(known)
    text = json.dumps(known, ensure_ascii=False, indent=indent)
    evaluation.budget.charge_text(len(text))
    return text


def _b64encode(evaluation: Evaluation, value: object) -> str:
    return base64.b64encode(_text(evaluation, value).encode()).decode()


def _b64decode(evaluation: Evaluation, value: object) -> str:
    try:
        return base64.b64decode(_text(evaluation, value), validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise ExpressionError(f"`b64decode` cannot read the text: {error}") from None


def _hash_filter(name: str) -> Callable[..., object]:
    def digest(evaluation: Evaluation, value: object) -> str:
        return hashlib.new(name, _text(evaluation, value).encode(), usedforsecurity=False).hexdigest()

    return digest


def _int(evaluation: Evaluation, value: object, default: object = 0, base: int = 10) -> object:
    """A whole number, or `default` where the value is none."""
    if isinstance(value, str):
        if len(value) > MAX_NUMERAL:  # the time of `int` grows with the square of the length
            return default
        try:
            return int(value.strip(), base)
        except ValueError:
            value = _float(evaluation, value, None)
    if isinstance(value, int | float) and math.isfinite(value):
        return int(value)
    return default


def _float(_: Evaluation, value: object, default: object = 0.0) -> object:
    """A number, or `default` where the value is none."""
    if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= MAX_NUMERAL):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return default
        return number if math.isfinite(number) else default
    return default


def _number(name: str, value: object) -> int | float:
    if isinstance(value, int | float):
        return value
    raise ExpressionError(
        f"`{name}` needs a number, not {type_name(value)}", hint="convert with `| int` or `| float`"
    )


def _abs(_: Evaluation, value: object) -> object:
    return abs(_number("abs", value))


def _round(_: Evaluation, value: object, precision: int = 0, method: str = "common") -> object:
    """Rounded to `precision` digits; `method` is 'common', 'ceil' or 'floor'."""
    number = _number("round", value)
    if type(precision) is not int or abs(precision) > 300:
        raise ExpressionError("`round` takes a precision between -300 and 300")
    if method == "common":
        return round(float(number), precision)
    if method not in ("ceil", "floor"):
        raise ExpressionError("`round` knows the methods 'common', 'ceil' and 'floor'")
    factor = 10.0**precision
    return (math.ceil if method == "ceil" else math.floor)(number * factor) / factor


def _bool(_: Evaluation, value: object) -> bool:
    return truthy(value)


TEXT_FILTERS: dict[str, Callable[..., object]] = {
    "abs": _abs,
    "b64decode": _b64decode,
    "b64encode": _b64encode,
    "bool": _bool,
    "capitalize": _method_filter("capitalize"),
    "center": _center,
    "e": _escape,
    "escape": _escape,
    "filesizeformat": _file_size,
    "float": _float,
    "forceescape": _escape,
    "format": _format,
    "from_json": _from_json,
    "indent": _indent,
    "int": _int,
    "lower": _method_filter("lower"),
    "md5": _hash_filter("md5"),
    "pprint": _pprint,
    "replace": _replace,
    "round": _round,
    "safe": _text,
    "sha1": _hash_filter("sha1"),
    "sha256": _hash_filter("sha256"),
    "string": _text,
    "title": _method_filter("title"),
    "to_json": _to_json,
    "tojson": _to_json,
    "trim": _method_filter("strip"),
    "truncate": _truncate,
    "upper": _method_filter("upper"),
    "urlencode": _urlencode,
    "wordcount": _wordcount,
    "xmlattr": _xmlattr,
}

"""Python code in use: the names it reads without being given them, and the expressions pasted into it."""

import ast
import io
import re
import token as token_types
import tokenize
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from noetl.dsl.dialects.v1.name_scope import unique_name
from noetl.expr.expression import parse
from noetl.model.errors import ExpressionError
from noetl.model.json import Json

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_AS_JSON = re.compile(r"\|\s*to_?json\s*\Z")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_STRING = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>'''|\"\"\"|'|\")(?P<body>.*)(?P=quote)\Z", re.DOTALL)


_MODULES = {
    "attrs": "attr",
    "babel": "babel",
    "beautifulsoup4": "bs4",
    "django": "django",
    "dnspython": "dns",
    "flask": "flask",
    "gitpython": "git",
    "google_api_python_client": "googleapiclient",
    "google_auth": "google.auth",
    "jinja2": "jinja2",
    "markupsafe": "markupsafe",
    "mysqlclient": "MySQLdb",
    "nats_py": "nats",
    "opencv_python": "cv2",
    "pillow": "PIL",
    "protobuf": "google.protobuf",
    "psycopg2_binary": "psycopg2",
    "pycryptodome": "Crypto",
    "pygments": "pygments",
    "pyjwt": "jwt",
    "pymysql": "pymysql",
    "pyserial": "serial",
    "python_dateutil": "dateutil",
    "python_dotenv": "dotenv",
    "pyyaml": "yaml",
    "pyzmq": "zmq",
    "scikit_image": "skimage",
    "scikit_learn": "sklearn",
    "sqlalchemy": "sqlalchemy",
    "websocket_client": "websocket",
}
"""Modules of packages whose names are others, if only in capitals: the package is declared, the module
imported."""


def likely_package(module: str) -> str:
    """The package that a module is likely to come from; empty if its name does not tell."""
    named = next((package for package, name in _MODULES.items() if name == module), "")
    return named.replace("_", "-") or (module if "." not in module else "")


def imports_of(packages: Iterable[str]) -> dict[str, Json]:
    """What is imported for packages, which may have versions and extras behind them."""
    names = {re.split(r"[\[<>=!~;@ ]", package)[0].replace("-", "_") for package in packages}
    imports: dict[str, Json] = {}
    for name in sorted(filter(None, names)):
        module = _MODULES.get(name.lower(), name)
        package, _, inner = module.rpartition(".")
        # A name in Python has no dots: the outermost package is imported, and the inner module with it.
        imports.setdefault(module.partition(".")[0], module.partition(".")[0])
        if inner and package:
            imports.setdefault(inner, {"from": package, "import": inner})
    return imports


class PastedCode(NamedTuple):
    """Code with names in the place of expressions, and what the names stand for."""

    code: str
    values: dict[str, str]


def read_names(code: str) -> frozenset[str]:
    """The names that code reads, or its `main` takes; none if it cannot be parsed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name == "main":
            names.update(arg.arg for arg in (*function.args.args, *function.args.kwonlyargs))
    return frozenset(names - bound)


def lift_expressions(code: str, rewrite: Callable[[str], str], inputs: Mapping[str, object]) -> PastedCode:
    """The code with every `{{ expression }}` as a name; `rewrite` makes each of them canonical.

    Names of `inputs` are taken, unless they stand for the same.

    Braces that hold no expression over names stay: they are Python.
    """
    if "{{" not in code:
        return PastedCode(code, {})
    taken = set(re.findall(r"[A-Za-z_]\w*", _BRACES.sub("", code)))
    stem = "noetl_value"
    while stem in code:
        stem += "_"
    expressions: dict[str, str] = {}

    def hold(match: re.Match[str]) -> str:
        if not _is_expression(match[0]):
            return match[0]
        # It may stand right between letters of a text, so that its end must be its own.
        placeholder = f"{stem}{len(expressions)}_"
        expressions[placeholder] = match[1].strip()
        return placeholder

    held = _BRACES.sub(hold, code)
    if not expressions:
        return PastedCode(code, {})
    quoted = _quoted_placeholders(held, expressions)
    names: dict[str, str] = {}
    values: dict[str, str] = {}
    for placeholder, expression in expressions.items():
        inner = expression if placeholder in quoted else _AS_JSON.sub("", expression).strip()
        template = rewrite("{{ " + inner + " }}")
        known = next((name for name, other in {**inputs, **values}.items() if other == template), None)
        name = known or unique_name(_name_for(inner), taken | set(values) | set(inputs))
        names[placeholder] = name
        values[name] = template
    return PastedCode(_with_names(held, names), values)


def _is_expression(text: str) -> bool:
    try:
        expression = parse(text)
    except ExpressionError:
        return False
    return expression.single and bool(expression.uses)


def _name_for(expression: str) -> str:
    path = parse("{{ " + expression + " }}").path
    last = path[-1] if path else ""
    return last if _NAME.match(last) and last not in ("result", "None", "True", "False") else "value"


def _string_tokens(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of texts; none where the code cannot be taken apart."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    middle = getattr(token_types, "FSTRING_MIDDLE", -1)
    return [item for item in tokens if item.type in (token_types.STRING, middle)]


def _quoted_placeholders(code: str, placeholders: dict[str, str]) -> set[str]:
    texts = [item.string for item in _string_tokens(code)]
    return {name for name in placeholders if any(name in text for text in texts)}


def _with_names(code: str, names: dict[str, str]) -> str:
    """The code with the names where their placeholders are; in a text, the text of their value."""
    lines = code.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    # From the back: what is still to come keeps its place.
    for item in reversed(_string_tokens(code)):
        if not any(name in item.string for name in names):
            continue
        start = starts[item.start[0] - 1] + item.start[1]
        end = starts[item.end[0] - 1] + item.end[1]
        code = code[:start] + _text_with_names(code[start:end], item.type, names) + code[end:]
    for placeholder, name in names.items():
        code = code.replace(placeholder, name)
    return code


def _text_with_names(text: str, kind: int, names: dict[str, str]) -> str:
    match = _STRING.match(text) if kind == token_types.STRING else None
    if match is None or "f" in match["prefix"].lower():
        for placeholder, name in names.items():
            text = text.replace(placeholder, "{" + name + "}")
        return text
    parts = re.split("|".join(f"({placeholder})" for placeholder in names), match["body"])
    pieces = []
    for part in filter(None, parts):
        quote = match["prefix"] + match["quote"]
        if part in names:
            pieces.append(f"str({names[part]})")
        elif part.endswith("\\") and "r" in match["prefix"].lower():
            pieces.append(repr(part))  # a raw text cannot end so
        else:
            pieces.append(f"{quote}{part}{match['quote']}")
    return pieces[0] if len(pieces) == 1 else f"({' + '.join(pieces)})"

"""Whether Python code touches nothing but its own values: proved from its text, or denied."""

import ast
from functools import lru_cache

from noetl.guest.code import parse_code

MODULES = frozenset(
    {
        "base64",
        "binascii",
        "bisect",
        "calendar",
        "cmath",
        "collections",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "itertools",
        "json",
        "math",
        "numbers",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "time",
        "typing",
        "unicodedata",
        "uuid",
        "zlib",
        "zoneinfo",
    }
)
"""What such code may import: nothing in there reaches outside the process by itself."""

_REACHING = frozenset(
    {
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "exit",
        "getattr",
        "globals",
        "help",
        "input",
        "locals",
        "open",
        "quit",
        "setattr",
        "vars",
    }
)
"""Built-ins with which it could."""


@lru_cache(maxsize=1_024)
def is_side_effect_free(code: str) -> bool:
    """Whether running it twice instead of once could be noticed by nobody.

    It need not give the same each time. The proof is for honest code: whoever wants to deceive it can,
    and gains nothing.
    """
    tree = parse_code(code)
    return tree is not None and all(_stays_inside(node) for node in ast.walk(tree))


def _stays_inside(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(alias.name in MODULES for alias in names)
        case ast.ImportFrom(module=module, level=level):
            return level == 0 and module in MODULES
        case ast.Name(id=name):
            return name not in _REACHING and not name.startswith("__")
        case ast.Attribute(attr=name):
            return not name.startswith("_")
        case _:
            return True

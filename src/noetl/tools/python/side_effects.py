"""Whether Python code touches nothing but its own values: proved from its text, or denied.

Such code may begin before that is recorded, and a child need not be set up and put back for it.
"""

import ast
from functools import lru_cache

from noetl.guest.code import parse_code

PURE_MODULES = frozenset(
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

_REACHING_BUILTINS = frozenset(
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


@lru_cache(maxsize=1_024)  # asked for at every attempt, often of the same code
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
            return all(alias.name in PURE_MODULES for alias in names)
        case ast.ImportFrom(module=module, level=level):
            return level == 0 and module in PURE_MODULES
        case ast.Name(id=name):
            # Wherever it stands: `f = open` would do as well as a call.
            return name not in _REACHING_BUILTINS and not name.startswith("__")
        case ast.Attribute(attr=name):
            # `__class__` and the like lead to everything; `random._os` to what a module imports.
            return not name.startswith("_")
        case _:
            return True

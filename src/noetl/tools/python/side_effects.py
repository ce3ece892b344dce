"""Whether Python code touches nothing but its own values: proved from its text, or denied.

Such code may begin before that is recorded, and a child need not be set up and put back for it.
"""

import ast
import sys
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


_REACHING_NAMES = frozenset(
    {
        # What those modules hold beside functions and classes: others, and values that can be changed.
        *(sys.stdlib_module_names - PURE_MODULES - {"abc"}),
        "bltns",
        "decoder",
        "encoder",
        "entities",
        "scanner",
        "EXCLUDED_ATTRIBUTES",
        "algorithms_available",
        "algorithms_guaranteed",
        "c",
        "day_abbr",
        "day_name",
        "dispatch_table",
        "mdays",
        "month_abbr",
        "month_name",
        "BasicContext",
        "DefaultContext",
        "ExtendedContext",
        # Functions that change what later code finds, or lead to it.
        "attrgetter",
        "clear_cache",
        "clock_settime",
        "clock_settime_ns",
        "get_type_hints",
        "methodcaller",
        "purge",
        "register",
        "reset_tzpath",
        "seed",
        "setfirstweekday",
        "setstate",
        "tzset",
        "update_wrapper",
        # From a generator or coroutine to the frames of its callers.
        "ag_frame",
        "cr_frame",
        "f_back",
        "f_builtins",
        "f_globals",
        "f_locals",
        "gi_frame",
        "tb_frame",
    }
)
"""Attributes with which it could, whatever they are of: to deny a harmless one costs microseconds."""


@lru_cache(maxsize=1_024)  # asked for at every attempt, often of the same code
def is_side_effect_free(code: str) -> bool:
    """Whether running it twice instead of once could be noticed by nobody.

    It need not give the same each time. The proof is for honest code: whoever wants to deceive it can,
    and gains nothing.
    """
    tree = parse_code(code)
    if tree is None:
        return False
    nodes = list(ast.walk(tree))
    modules = {
        alias.asname or alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    return all(
        _stays_inside(node)
        # A module under another name could be changed by that.
        and not (isinstance(node, ast.Name) and node.id in modules and id(node) not in bases)
        for node in nodes
    )


def _stays_inside(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return all(alias.name in PURE_MODULES for alias in names)
        case ast.ImportFrom(module="__future__", level=0):
            return True
        case ast.ImportFrom(module=module, names=names, level=level):
            return level == 0 and module in PURE_MODULES and all(_is_harmless(alias.name) for alias in names)
        case ast.Name(id=name, ctx=context):
            # Wherever it stands: `f = open` would do as well as a call.
            if name == "self" and not isinstance(context, ast.Load):
                return False
            return name not in _REACHING_BUILTINS and not name.startswith("__")
        case ast.Attribute(attr=name, value=base, ctx=context):
            # Only of its own objects: setting that of a class or module would be seen by later code.
            own = isinstance(context, ast.Load) or (isinstance(base, ast.Name) and base.id == "self")
            return own and _is_harmless(name)
        case ast.MatchClass(kwd_attrs=names):
            return all(map(_is_harmless, names))
        case ast.Subscript(value=ast.Attribute(), ctx=ast.Store() | ast.Del()):
            return _is_of_self(node.value)
        case _:
            return True


def _is_of_self(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _is_harmless(name: str) -> bool:
    """`__class__` and the like lead to everything; `random._os` and `uuid.os` to what a module imports."""
    return not name.startswith("_") and name != "*" and name not in _REACHING_NAMES

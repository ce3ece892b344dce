"""THE expression environment: everything that playbooks write in `{{ … }}` is read and evaluated here."""

from noetl.expr.analysis import Use
from noetl.expr.data import Constant, Data, ListData, MapData, data_of, expressions_in, render, uses_of
from noetl.expr.exclusion import exclude_each_other
from noetl.expr.expression import Expression, parse
from noetl.expr.form import gives_boolean, is_concatenation
from noetl.expr.lexing import Token, tokens
from noetl.expr.partial import Facts, Hazy, Known, Value, verdicts
from noetl.expr.paths import Path
from noetl.expr.references import Unread, Veiled, overlaid, with_extracted
from noetl.expr.scope import BUILTIN_ITER, NAMESPACES, Scope
from noetl.expr.truth import guard_fault, is_template, truthy
from noetl.expr.undefined import Site

__all__ = [
    "BUILTIN_ITER",
    "NAMESPACES",
    "Constant",
    "Data",
    "Expression",
    "Facts",
    "Hazy",
    "Known",
    "ListData",
    "MapData",
    "Path",
    "Scope",
    "Site",
    "Token",
    "Unread",
    "Use",
    "Value",
    "Veiled",
    "data_of",
    "exclude_each_other",
    "expressions_in",
    "gives_boolean",
    "guard_fault",
    "is_concatenation",
    "is_template",
    "overlaid",
    "parse",
    "render",
    "tokens",
    "truthy",
    "uses_of",
    "verdicts",
    "with_extracted",
]

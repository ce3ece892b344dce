"""THE expression environment: everything that playbooks write in `{{ … }}` is read and evaluated here."""

from noetl.expr.analysis.exclusion import exclude_each_other
from noetl.expr.analysis.partial_evaluation import Facts, Hazy, Known, Value, verdicts
from noetl.expr.analysis.uses import Use
from noetl.expr.expression import Expression, parse
from noetl.expr.form import gives_boolean, is_concatenation
from noetl.expr.language.guard import guard_fault, is_template, truthy
from noetl.expr.language.lexer import Token, tokens
from noetl.expr.language.path import Path
from noetl.expr.runtime.marker import Unread, Veiled, overlaid, with_extracted
from noetl.expr.runtime.missing_value import Site
from noetl.expr.runtime.scope import BUILTIN_ITER, NAMESPACES, Scope
from noetl.expr.template import Constant, Data, ListData, MapData, data_of, expressions_in, render, uses_of

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

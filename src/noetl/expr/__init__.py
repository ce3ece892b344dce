"""THE expression environment: everything that playbooks write in `{{ … }}` is read and evaluated here."""

from noetl.expr.analysis.exclusion import mutually_exclusive
from noetl.expr.analysis.partial_evaluation import AbstractValue, Facts, KnownValue, Uncertain, verdicts
from noetl.expr.analysis.uses import Use
from noetl.expr.expression import Expression, parse
from noetl.expr.language.guard import gives_boolean, guard_fault, is_concatenation, is_template
from noetl.expr.language.lexer import SourceToken, tokenize
from noetl.expr.language.path import Path
from noetl.expr.runtime.conversion import truthy
from noetl.expr.runtime.marker import (
    ABSENT,
    ReferenceUnresolved,
    SecretRefused,
    with_extracted,
    write_at_path,
)
from noetl.expr.runtime.missing_value import EvaluationSite
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, NAMESPACES, Scope
from noetl.expr.template import (
    Constant,
    ListTemplate,
    MappingTemplate,
    Template,
    parse_template,
    render,
    template_expressions,
    template_uses,
)

__all__ = [
    "ABSENT",
    "BUILTIN_ITER_KEYS",
    "NAMESPACES",
    "AbstractValue",
    "Constant",
    "EvaluationSite",
    "Expression",
    "Facts",
    "KnownValue",
    "ListTemplate",
    "MappingTemplate",
    "Path",
    "ReferenceUnresolved",
    "Scope",
    "SecretRefused",
    "SourceToken",
    "Template",
    "Uncertain",
    "Use",
    "gives_boolean",
    "guard_fault",
    "is_concatenation",
    "is_template",
    "mutually_exclusive",
    "parse",
    "parse_template",
    "render",
    "template_expressions",
    "template_uses",
    "tokenize",
    "truthy",
    "verdicts",
    "with_extracted",
    "write_at_path",
]

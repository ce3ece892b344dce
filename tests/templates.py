"""Values of playbooks with expressions inside, made without a document."""

from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.expr.template import Constant, ListTemplate, MappingTemplate, Template
from noetl.model.json import Json


def parse_template(value: Json) -> Template:
    """Every string of `value` that holds a template is parsed."""
    match value:
        case str() if is_template(value):
            return parse(value)
        case list():
            items = tuple(map(parse_template, value))
            return (
                Constant(value) if all(isinstance(item, Constant) for item in items) else ListTemplate(items)
            )
        case dict():
            entries = {key: parse_template(item) for key, item in value.items()}
            constant = all(isinstance(item, Constant) for item in entries.values())
            return Constant(value) if constant else MappingTemplate(entries)
        case _:
            return Constant(value)

"""What Jinja2 has and expressions do not, each with the reason: errors say it, and the page about Jinja2."""

from collections.abc import Mapping

_FILES = "a string of a playbook stands alone: there are no templates to load"
_ESCAPING = "nothing is escaped by itself here, write `| escape` where HTML is made"
_CHANGES = "values do not change, "
_LOOP_CONTROL = "write `{% for x in list if condition %}`"

ABSENT_STATEMENTS: Mapping[str, str] = {
    **dict.fromkeys(("block", "extends", "from", "import", "include"), _FILES),
    "autoescape": _ESCAPING,
    "break": _LOOP_CONTROL,
    "continue": _LOOP_CONTROL,
    "debug": "it would show all that is at hand, secrets too; `noetl executions explain` shows what was read",
    "do": _CHANGES + "so a call whose result nobody takes does nothing",
    "trans": "there are no translations",
}
"""Statements of Jinja2 and of the extensions that come with it."""

ABSENT_FILTERS: Mapping[str, str] = {
    "attr": "values have keys and no attributes, write `value[name]`",
    "striptags": "HTML is taken apart in a task",
    "urlize": "HTML is made in a task",
    "wordwrap": "text is broken into lines in a task",
}
ABSENT_TESTS: Mapping[str, str] = {
    "callable": "no value can be called",
    "escaped": _ESCAPING,
}
ABSENT_FUNCTIONS: Mapping[str, str] = {
    "cycler": "write `loop.cycle(…)`",
    "joiner": "write `| join(…)`, or ask `loop.first`",
    "lipsum": "test data is made in a task",
    "super": _FILES,
}
ABSENT_METHODS: Mapping[str, str] = {
    "append": _CHANGES + "write `list + [item]`",
    "changed": "compare with `loop.previtem`",
    "clear": _CHANGES + "write `[]` or `{}`",
    "encode": "there are no bytes here, `| b64encode` gives text",
    "expandtabs": "write `.replace(…)`",
    "extend": _CHANGES + "write `list + more`",
    "format_map": "write `.format(…)` with the values by name",
    "fromkeys": "write `{…}` or `dict(…)`",
    "insert": _CHANGES + "write `list[:n] + [item] + list[n:]`",
    "maketrans": "write `.replace(…)`",
    "pop": _CHANGES + "write `list[:-1]`, or `dict(…)` of what is to stay",
    "popitem": _CHANGES + "write `dict(…)` of what is to stay",
    "remove": _CHANGES + "write `| reject('eq', item)`",
    "reverse": _CHANGES + "write `| reverse`",
    "setdefault": _CHANGES + "write `dict(mapping, key=value)`",
    "sort": _CHANGES + "write `| sort`",
    "translate": "write `.replace(…)`",
    "update": _CHANGES + "write `dict(mapping, key=value)`",
}
"""Methods of text, lists, mappings and `loop`."""

ABSENT_SYNTAX: Mapping[str, str] = {
    "`f(*list)`, `f(**mapping)`": "the number of arguments could not be charged before the call",
    "`{% for … recursive %}`, `loop(…)`": "write a macro that calls itself",
    "`a.b()` of a value that is a function": "values are data, only methods of this page can be called",
    "`self`": _FILES,
    "line statements and line comments": "Jinja2 has them off, too, unless a program sets a prefix",
}
"""Other syntax."""

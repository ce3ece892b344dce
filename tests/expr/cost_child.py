"""Calls what expressions may call with large arguments; one line before and after each, so that a hang has a name."""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import Parameter, signature
from itertools import product

from jinja2.runtime import LoopContext, Macro

from noetl.expr.language.environment import ENVIRONMENTS
from noetl.expr.library import operators
from noetl.expr.library.date_filters import DATE_FILTERS
from noetl.expr.library.functions import FUNCTIONS, call_function, call_macro
from noetl.expr.library.list_filters import LIST_FILTERS
from noetl.expr.library.methods import METHODS, call_method
from noetl.expr.library.text_filters import TEXT_FILTERS
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import STEP_COST, WORK_BUDGET
from noetl.expr.runtime.missing_value import MissingError
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.model.errors import ExpressionError

MEMORY = 768 * 1024 * 1024
SECONDS = 4
UNIT = 1.5e-6
"""Seconds that a unit may take: a whole budget of such calls then ends within ten. A usual one takes 0.1 µs."""
GRACE = 200
"""Units that a call may take beyond what it charges; otherwise the noise of clocks would be measured."""

ENVIRONMENT = ENVIRONMENTS[EvaluationSite.VALUE]
Call = Callable[[Evaluation], object]
SCOPE = Scope({}, now=lambda: "2026-01-01T00:00:00Z", draw=lambda bound: bound - 1)
MACRO = Macro(ENVIRONMENT, lambda *_: "", "m", ["a"], True, True, False, False)

_PREFIX = "a" * 2_000
NESTED: list[object] = [1] * 50
for _ in range(60):
    NESTED = [*NESTED[-3:], NESTED, "a" * 40]
GIANTS: dict[str, object] = {
    "a giant text": "a" * 200_000,
    "a giant needle": "ab" + "a" * 100_000,
    "a giant range": range(1_000_000),
    "a giant list": list(range(60_000)),
}
VALUES: dict[str, object] = {
    "none": None,
    "a fraction": 0.5,
    "a number": 3,
    "a number of 4,000 bits": 2**4_000 - 1,
    "a letter": "a",
    "a short text": "a" * 1_200 + "b" + "a" * 40,
    "a long needle": "b" + "a" * 3_000,
    "a long text": "a" * 6_000,
    "words": "ab, " * 1_000,
    "text that is not ASCII": "\N{GREEK SMALL LETTER IOTA WITH DIALYTIKA AND TONOS}" * 1_500,
    "text that is not printable": "\N{LANGUAGE TAG}" * 1_000,
    "JSON": "[" + "1e9," * 1_000 + "1]",
    "a range": range(4_000),
    "numbers with one hash": range(0, 1_500 * (2**61 - 1), 2**61 - 1),
    "long numbers": [2**4_000 - 1] * 100,
    "lists": [[0] * 20] * 500,
    "nested lists": NESTED,
    "patterns": "%5s%.3f%d%%" * 300,
    "fields": "{0:>9}{{" * 300,
    "texts that begin alike": [_PREFIX + str(number) for number in range(50)],
    "mappings": [{"a": number, "b": "x"} for number in range(300)],
    "a mapping": {f"k{number}": number for number in range(2_000)},
    "a pair": ("a", "b" * 20_000),
}
SECOND = ("none", "a long needle", "long numbers")
FEW = ("a short text", "a long text")
KEYWORD_FIRST = ("a number", "a short text", "fields", "mappings", "a mapping")
KEYWORD_VALUES = ("a number", "a number of 4,000 bits", "a letter", "a giant needle", "long numbers", "lists")
NAMED: dict[str, tuple[str, ...]] = {
    "date_add": ("days", "weeks"),
    "dict": ("a", "b"),
    "format": ("a", "name"),
    "map": ("attribute", "default"),
    "namespace": ("a", "b"),
    **dict.fromkeys(("reject", "rejectattr", "select", "selectattr"), ("other",)),
}
"""What functions that take any name are called with."""
GIANT_PAIRS = (
    ("a giant text", "a giant needle"),
    ("a giant list", "a giant list"),
    ("a fraction", "a giant range"),
)


def arguments_of() -> Iterator[tuple[str, list[object]]]:
    """What things are called with: one and two of every kind, three of some, giants."""
    alone = [(key,) for key in (*VALUES, "a giant text", "a giant list")]
    pairs = [*product(VALUES, SECOND), *GIANT_PAIRS]
    for keys in (*alone, *pairs, *product(FEW, FEW, ["a number", "a long needle"])):
        yield ", ".join(keys), [(VALUES | GIANTS)[key] for key in keys]


def calls_of(family: str, name: str) -> Iterator[tuple[str, Call]]:
    """Each way to call it, with a name."""
    for label, values in arguments_of():
        call = call_with(family, name, values, {})
        if call is not None:
            yield f"{family} {name} of {label}", call
    for keyword in keywords_of(family, name):
        for first, key in product(KEYWORD_FIRST, KEYWORD_VALUES):
            named = {keyword: (VALUES | GIANTS)[key]}
            call = call_with(family, name, [VALUES[first]], named)
            if call is not None:
                yield f"{family} {name} of {first}, {keyword}={key}", call


def keywords_of(family: str, name: str) -> Iterator[str]:
    """The names that arguments can be given by."""
    families: dict[str, dict[str, Callable[..., object]]] = {
        "filter": LIST_FILTERS | TEXT_FILTERS | DATE_FILTERS,
        "function": FUNCTIONS,
        **METHODS,  # type: ignore[dict-item]  # a family is text
    }
    functions = families.get(family, {})
    if name in functions:
        parameters = list(signature(functions[name]).parameters.values())
        named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        yield from (parameter.name for parameter in parameters[2:] if parameter.kind in named)
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
            yield from NAMED[name]
    elif (family, name) == ("filter", "default"):
        yield "default"


def call_with(family: str, name: str, values: list[object], named: dict[str, object]) -> Call | None:
    """The call, or None where there is none with so many arguments."""
    first, rest = values[0], values[1:]
    match family, name:
        case "text" | "mapping" | "list", _:
            kinds = {"text": str, "mapping": dict, "list": list | tuple}
            return (
                (lambda on: call_method(on, first, name, *rest, **named))
                if isinstance(first, kinds[family])
                else None
            )
        case "loop", _:
            loop = LoopContext([1], ENVIRONMENT.undefined)
            return lambda on: call_method(on, loop, name, *values)
        case "filter", _:
            return lambda on: ENVIRONMENT.filters[name](on, *values, **named)
        case "test", _:
            return lambda on: ENVIRONMENT.call_test(name, first, rest, {}, on)
        case "function", _:
            return lambda on: call_function(on, name, *values, **named)
        case _, "[]" if len(values) == 2:
            return lambda on: operators.get_item(on, first, rest[0])
        case _, "{:}" if len(values) == 2:
            return lambda on: operators.build_mapping(on, first, rest[0], "k", rest[0])
        case _, "[,]":
            return lambda on: operators.build_collection(on, values)
        case _, "~":
            return lambda on: operators.join_text(on, *values)
        case _, "for":
            return lambda on: [None for _ in operators.LoopSteps(on, first, STEP_COST)] and None
        case _, "call":
            return lambda on: call_macro(on, MACRO, *values)
        case _, "not":
            return lambda on: operators.negate(on, first)
        case _, "-x" | "+x":
            return lambda on: operators.apply_sign(on, name[0], first)
        case _, "[:]" if len(values) == 2:
            return lambda on: operators.slice_value(on, first, None, None, rest[0])
        case _, "+" | "-" | "*" | "/" | "//" | "%" | "**" if len(values) == 2:
            return lambda on: operators.calculate(on, name, *values)
        case _, _ if len(values) == 2:
            return lambda on: operators.compare(on, first, name, rest[0])
    return None


def overrun(call: Call) -> float:
    """How many times longer the call takes than what it charges may."""
    evaluation = Evaluation(ENVIRONMENT, ENVIRONMENT.eval_ctx, SCOPE)
    began = time.process_time()
    with suppress(ExpressionError, MissingError, TypeError):
        call(evaluation)
    seconds = time.process_time() - began
    charged = min(WORK_BUDGET - evaluation.budget.left, WORK_BUDGET)
    return seconds / ((charged + GRACE) * UNIT)


def write_line(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for row in json.loads(sys.stdin.read()):
        for label, call in calls_of(*row):
            write_line({"begin": label, "row": row})
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time; unhandled, it ends the process
            factor = overrun(call)
            if factor > 1:  # another program may have disturbed the first measurement
                factor = min(factor, overrun(call), overrun(call))
            signal.setitimer(signal.ITIMER_PROF, 0)
            if factor > 1:
                write_line({"overrun": label, "factor": round(factor, 1)})
        write_line({"end": row})


if __name__ == "__main__":
    main()

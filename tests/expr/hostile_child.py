"""Runs hostile sources, one line of output before and after each, so that a crash names its case."""

import json
import resource
import signal
import sys
import time

from noetl.expr.expression import parse
from noetl.expr.runtime import limits
from noetl.model.errors import ExpressionError
from tests.expr.hostile_cases import HARMLESS, REFUSED_WHEN_EVALUATED, REFUSED_WHEN_READ, UNDEFINED

WORK_BUDGET = limits.WORK_BUDGET
MEMORY = 512 * 1024 * 1024
SECONDS = 8
ALIKE = frozenset(
    {
        "a macro with nothing in it in a loop",
        "a loop with a filter that finds nothing",
        "a loop over filters",
        "a loop with much to do",
        "loops that only test",
        "ranges multiplied by loops",
    }
)
"""They do the same again and again until their work is refused: a quarter of it shows in a quarter of the time."""


def fate_of(source: str) -> tuple[str, str]:
    """Where the source was refused, or its value."""
    try:
        expression = parse(source)
    except ExpressionError as error:
        return "refused when read", error.message
    try:
        value = expression.evaluate({"ctx": {"list": [1], "items": 1}})
    except ExpressionError as error:
        return "refused when evaluated", error.message
    return "value", repr(value)[:80]


def print_line(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sources = REFUSED_WHEN_READ | REFUSED_WHEN_EVALUATED | UNDEFINED | HARMLESS
    for name in json.loads(sys.stdin.read()):
        part = 4 if name in ALIKE else 1
        limits.WORK_BUDGET = WORK_BUDGET // part
        print_line({"begin": name})
        signal.setitimer(
            signal.ITIMER_PROF, SECONDS / part
        )  # of processor time; unhandled, it ends the process
        began = time.process_time()
        try:
            fate, detail = fate_of(sources[name])
        except Exception as error:  # noqa: BLE001 - whatever escapes is what the test is about
            fate, detail = "escaped", f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        print_line({"end": name, "fate": fate, "detail": detail, "seconds": seconds})


if __name__ == "__main__":
    main()

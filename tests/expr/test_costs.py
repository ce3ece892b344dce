"""Everything that expressions can call ends in a time that was charged before it ran, whatever its arguments."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from noetl.expr.expression import parse
from noetl.expr.library.costs import COSTS, Family, charge_call
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import FUNCTIONS
from noetl.expr.library.methods import METHODS
from noetl.expr.library.operators import COMPARISONS
from noetl.expr.library.tests import TESTS
from noetl.expr.runtime.limits import Budget
from noetl.model.errors import ExpressionError

ROOT = Path(__file__).parents[2]
CHILD = [sys.executable, "-m", "tests.expr.cost_child"]


def test_all_that_can_be_called_has_a_cost() -> None:
    arithmetic = {"+", "-", "*", "/", "//", "%", "**"}
    syntax = {"-x", "+x", "not", "~", "[]", "[:]", "[,]", "{:}", "for", "call"}
    operators = {*arithmetic, *syntax, *COMPARISONS, "in", "notin"}
    families: dict[Family, Iterable[str]] = {
        **METHODS,
        "filter": FILTERS,
        "test": TESTS,
        "function": FUNCTIONS,
        "operator": operators,
    }
    assert {family: set(rows) for family, rows in COSTS.items()} == {
        family: set(names) for family, names in families.items()
    }


def test_what_has_no_cost_is_refused() -> None:
    with pytest.raises(ExpressionError, match="`format_map` cannot be called"):
        charge_call(Budget(), "text", "format_map", "{:1000000000}", 1)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("-x", "{{ -a }}"),
        ("+x", "{{ +a }}"),
        ("not", "{{ not a }}"),
        ("~", "{{ a ~ b }}"),
        ("[,]", "{{ [a, b] }}"),
        ("{:}", "{{ {'k': a} }}"),
        ("{:}", "{{ {b: a} }}"),
        ("[]", "{{ {'k': 1}[b] }}"),
        ("[:]", "{{ b[:a] }}"),
        ("for", "{% for i in b %}{% endfor %}"),
        ("call", "{% macro m() %}{% endmacro %}{{ m() }}"),
    ],
)
def test_syntax_is_charged_by_its_own_row(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Budget, *arguments: object) -> None:
        raise ExpressionError("charged")

    monkeypatch.setitem(COSTS["operator"], name, refuse)
    with pytest.raises(ExpressionError, match="charged"):
        parse(source).evaluate({"a": 1, "b": "k"})


@pytest.mark.timeout(300)
def test_no_call_takes_longer_than_it_charges() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    waiting = [[family, name] for family, rows in COSTS.items() for name in rows]
    slow: list[object] = []
    while waiting:
        child = subprocess.run(
            CHILD,
            input=json.dumps(waiting),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
        )
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        assert lines, child.stderr
        slow += [line for line in lines if "overrun" in line]
        if "end" in lines[-1]:
            break
        # A child that ended in a call is charged to it, and the rows after it go to another.
        slow.append({"ended": lines[-1], "exit": child.returncode, "stderr": child.stderr[-500:]})
        waiting = waiting[waiting.index(lines[-1]["row"]) + 1 :]
    assert slow == []

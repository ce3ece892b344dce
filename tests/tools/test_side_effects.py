"""Which code is proved to touch nothing but its own values."""

from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from types import ModuleType

import pytest

from noetl.tools.python.side_effects import PURE_MODULES, is_side_effect_free
from tests.tools.python_calls import call, results, run

CONTAINED = [
    "result = 1",
    "fib = lambda n: n if n < 2 else fib(n - 1) + fib(n - 2)\nresult = fib(10)",
    "import math, json\nresult = json.dumps({'a': math.pi})",
    "from datetime import datetime, UTC\nresult = datetime.now(UTC).isoformat()",
    "def main(rows):\n    print(len(rows))\n    return [row['id'] for row in rows if row.get('ok')]",
    "class Point:\n    def __init__(self, x):\n        self.x = x\nresult = Point(3).x",
    "return sorted(set(args['names']))",
    r"import re; result = re.findall('\d', text)",  # Python would warn of it
]

REACHING = [
    "open('x', 'w').write('1')",
    "import os\nos.remove('x')",
    "import requests",
    "from . import helper",
    "from os import path",
    "import os.path",
    "__import__('os').remove('x')",
    "eval('1')",
    "exec('import os')",
    "().__class__.__subclasses__()",
    "getattr(object, name)",
    "breakpoint()",
    "f = open\nf('x')",
    "lambda: open('x')",
    "import random\nrandom._os.remove('x')",
    "import uuid\nuuid.os.chdir('/etc')",
    "import re\nre.enum.sys.path.insert(0, 'evil')",
    "from uuid import os",
    "from random import _os",
    "from uuid import *",
    "import time\ntime.tzset()",
    "import random\nrandom.seed(1)",
    "import calendar\ncalendar.setfirstweekday(3)",
    "import decimal\ndecimal.DefaultContext.prec = 3",
    "import json\njson.dumps = print",
    "import json\nj = json\nj.dumps = print",
    "from json import JSONEncoder\nJSONEncoder.default = print",
    "import json\ndel json.dumps",
    "import json\nfor json.dumps in [print]: pass",
    "import operator, uuid\noperator.attrgetter('os')(uuid)",
    "import typing\ntyping.get_type_hints(x)",
    "import json\nself = json\nself.dumps = print",
    "def steps(): yield\nsteps().gi_frame.f_builtins['len'] = print",
    "match 1:\n    case object(__class__=kind): pass",
    "import copy\ncopy.dispatch_table[int] = print",
    "def",
    "\0",
]


@pytest.mark.parametrize("code", CONTAINED)
def test_code_that_works_on_values_is_contained(code: str) -> None:
    assert is_side_effect_free(code)


@pytest.mark.parametrize("code", REACHING)
def test_code_that_could_reach_outside_is_not(code: str) -> None:
    assert not is_side_effect_free(code)


def shared_parts(module: ModuleType, seen: set[str]) -> Iterator[tuple[str, str]]:
    """What the module lends that is another module, or a value that can be changed; and what those lend."""
    seen.add(module.__name__)
    for name, value in vars(module).items():
        if isinstance(value, ModuleType) and (value.__name__ in PURE_MODULES or name == "abc"):
            if value.__name__ not in seen:
                yield from shared_parts(value, seen)
        elif isinstance(value, ModuleType | list | dict | set | bytearray):
            yield module.__name__, name


@pytest.mark.parametrize("pure", sorted(PURE_MODULES))
def test_no_module_leads_to_another_that_reaches_outside(pure: str) -> None:
    passing = [
        (module, name)
        for module, name in shared_parts(import_module(pure), set())
        if is_side_effect_free(f"import {pure}\nresult = {pure}.{name}")
        or is_side_effect_free(f"from {pure} import {name}")
    ]
    assert passing == []


def test_contained_code_leaves_nothing_to_the_next_task() -> None:
    dataclass = dedent(
        """\
        from __future__ import annotations
        from dataclasses import dataclass
        @dataclass
        class Point:
            x: int
        secret = 7
        result = Point(3).x
        """
    )
    assert results(dataclass, "result = 'secret' in globals()", "result = secret if False else 'new'") == [
        3,
        False,
        "new",
    ]


IMPORTS = ["", "import math, json\n", "from collections import Counter\n", "import datetime as d, re\n"]
BODIES = [
    "result = [n * 2 for n in range(3)]",
    "return {'a': args['n'], 'b': n}",
    "def main(n):\n    print(n)\n    return n + 1",
    "result = 1 / 0",
    "raise ValueError('no')",
    "import random\nresult = random.Random(n).random()",
    "import decimal\ndecimal.setcontext(decimal.Context(prec=n))\nresult = str(1 / decimal.Decimal(n))",
    "import decimal\nresult = str(1 / decimal.Decimal(n))",
    "result = n",
    "n += 1",
    "async def main(n): return n",
]


def test_code_that_is_contained_does_the_same_in_a_process_that_is_put_back() -> None:
    """A variable in its environment makes a task one for which the process is set up and put back."""
    codes = [first + body for first in IMPORTS for body in BODIES]
    assert all(is_side_effect_free(code) for code in codes)
    quick = run(*(call(code, args={"n": 3}) for code in codes))
    slow = run(*(call(code, args={"n": 3}, spec={"env": {"X": "1"}}) for code in codes))
    assert quick == slow

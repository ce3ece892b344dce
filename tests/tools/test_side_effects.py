"""Which code is proved to touch nothing but its own values."""

from textwrap import dedent

import pytest

from noetl.tools.python.side_effects import is_side_effect_free
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
    "def",
    "\0",
]


@pytest.mark.parametrize("code", CONTAINED)
def test_code_that_works_on_values_is_contained(code: str) -> None:
    assert is_side_effect_free(code)


@pytest.mark.parametrize("code", REACHING)
def test_code_that_could_reach_outside_is_not(code: str) -> None:
    assert not is_side_effect_free(code)


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
    "import random\nrandom.seed(n)\nresult = random.random()",
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

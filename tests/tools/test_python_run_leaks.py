"""What a task changes in its process is not there for the next: all that a process has, one after the other."""

import random
from pathlib import Path
from typing import Any

import pytest

from noetl.guest.process_state import FIXED
from tests.tools.python_calls import call, results, run

PID = "import os\nresult = os.getpid()"

COMPARED = {
    "file mode mask": "os.umask(0o777)",
    "signal handlers": "import signal; signal.signal(signal.SIGHUP, lambda *a: None)",
    "blocked signals": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])",
    "timers": "import signal; signal.setitimer(signal.ITIMER_PROF, 500)",
    "limits": "import resource as r; r.setrlimit(r.RLIMIT_NPROC, (5000, r.getrlimit(r.RLIMIT_NPROC)[1]))",
    "users": "os.seteuid(65534)",
    "groups": "os.setegid(65534)",
    "process group": "os.setpgid(0, os.getppid())\nos.setsid()",
    "priority": "os.nice(1)",
    "root folder": "os.chroot('/usr')",
    "open files": "os.open('/', os.O_RDONLY)",
    "locale": "import locale; locale.setlocale(locale.LC_CTYPE, 'C')",
    "socket timeout": "import socket; socket.setdefaulttimeout(1.5)",
    "switch interval": "sys.setswitchinterval(0.5)",
    "recursion limit": "sys.setrecursionlimit(50_000)",
    "digits limit": "sys.set_int_max_str_digits(9_999)",
    "trace function": "sys.settrace(lambda *a: None)",
    "profile function": "sys.setprofile(lambda *a: None)",
    "generator hooks": "sys.set_asyncgen_hooks(firstiter=print)",
    "coroutine origins": "sys.set_coroutine_origin_tracking_depth(3)",
    "garbage collection": "import gc; gc.callbacks.append(lambda *a: None)",
    "crash report": "import faulthandler; faulthandler.disable()",
    "error handlers": "import codecs; codecs.register_error('replace', codecs.lookup_error('ignore'))",
    "decimal contexts": "import decimal; decimal.DefaultContext.prec = 3",
    "processors": "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])",
    "scheduling": "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
    "library flags": "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)",
}


def test_all_that_is_compared_is_tried() -> None:
    assert COMPARED.keys() >= FIXED.keys()


@pytest.mark.parametrize("name", FIXED)
def test_a_process_in_which_something_else_holds_is_replaced(name: str) -> None:
    read = f"from noetl.guest.process_state import FIXED\nresult = repr(FIXED[{name!r}]())"
    spoil = f"import os, sys\nbefore = os.getpid()\n{COMPARED[name]}\n{read}"
    first, before, spoilt, last = run(call(PID), call(read), call(spoil), call(PID))
    if spoilt.status == "error" or spoilt.result == before.result:
        # The system does not let this user or machine have it otherwise, and so nothing is left behind.
        assert spoilt.status == "ok" or spoilt.helpers["py"]["exception_type"] == "PermissionError", spoilt
        return
    assert last.result != first.result


EQUAL = "class Equal:\n    __eq__ = lambda *a: True\n    __call__ = lambda *a: 'evil'\n"


PUT_BACK = {
    "a time zone": (
        "import os, time; os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()",
        "import os, time; result = [time.timezone, os.environ.get('TZ'), time.localtime(0).tm_hour]",
    ),
    "a time zone that only the system knows": (
        "import os, time; os.environ['TZ'] = 'Asia/Tokyo'; time.mktime(time.gmtime(0))",
        "import os, time; result = time.localtime(0).tm_hour",
    ),
    "the decimal context": (
        "import decimal; decimal.getcontext().prec = 3",
        "import decimal; result = str(decimal.Decimal(1) / 3)",
    ),
    "warnings": (
        "import warnings; warnings.simplefilter('error'); warnings.showwarning = print",
        "import warnings; result = [str(warnings.filters), str(warnings.showwarning)[:20]]",
    ),
    "import hooks": (
        (
            "import sys\nclass F:\n    find_spec = staticmethod(lambda n, p, t=None: None)\n"
            "sys.meta_path.insert(0, F)\nsys.path_hooks.insert(0, lambda path: F)\n"
            "sys.path_importer_cache[sys.path[-1]] = F"
        ),
        (
            "import sys; result = [str(sys.meta_path), len(sys.path_hooks), "
            "'__noetl__' in str(sys.path_importer_cache)]"
        ),
    ),
    "lists that are bound anew": (
        "import sys; sys.path = ['/x']; sys.argv = []; sys.meta_path = []; sys.path_hooks = []",
        "import sys; result = [sys.path, sys.argv, len(sys.meta_path), len(sys.path_hooks)]",
    ),
    "hooks of the interpreter": (
        "import sys, threading; sys.excepthook = sys.unraisablehook = sys.displayhook = threading.excepthook = print",
        (
            "import sys, threading; result = [str(f) for f in (sys.excepthook, sys.unraisablehook, sys.displayhook, "
            "threading.excepthook)]"
        ),
    ),
    "built-ins": (
        "import builtins; builtins.leak = 1; builtins.len = print; del builtins.open",
        "import builtins; result = [hasattr(builtins, 'leak'), len([1]), str(open)]",
    ),
    "a name that a module did not have": (
        "import os; os.leak = 1",
        "import os; result = hasattr(os, 'leak')",
    ),
    "a name that a module had": ("import os; del os.getlogin", "import os; result = str(os.getlogin)"),
    "a name that means another": ("import os; os.getlogin = print", "import os; result = str(os.getlogin)"),
    "a name that means what says to be equal": (
        f"{EQUAL}import os; os.getlogin = Equal()",
        "import os; result = str(os.getlogin)",
    ),
    "a module that is another": (
        "import json, sys; sys.modules['json'] = sys",
        "import json; result = json.__name__",
    ),
    "the path of modules": ("import sys; sys.path.append('evil')", "import sys; result = sys.path"),
    "the environment": ("import os; os.environ['LEAK'] = '1'", "import os; result = dict(os.environ)"),
    "the working directory": ("import os; os.chdir('/etc')", "import os; result = os.getcwd()"),
    "the stack of threads": (
        "import threading; threading.stack_size(1 << 20)",
        "import threading; result = threading.stack_size()",
    ),
    "functions of the system": (
        "import os, time, gc; os.getcwd = os.listdir = time.time = gc.collect = lambda *a: '/evil'",
        "import os, time; result = [os.getcwd(), str(time.time), str(os.listdir)]",
    ),
    "what passes for part of a module": (
        "import re\nre.enum.sys.path.insert(0, 'evil')\nre.enum.sys.modules['json'] = None",
        "import sys; result = [sys.path[0], sys.modules.get('json', 1) is None]",
    ),
    "what passes for a module's own": (
        "import uuid; uuid.os.chdir('/etc'); uuid.os.environ['LEAK'] = '1'",
        "import os; result = [os.getcwd(), os.environ.get('LEAK')]",
    ),
}


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_can_be_put_back_is_and_the_process_stays(name: str) -> None:
    spoil, probe = PUT_BACK[name]
    first, before, spoilt, after, last = run(call(PID), call(probe), call(spoil), call(probe), call(PID))
    assert spoilt.status == before.status == "ok", (spoilt, before)
    assert after == before
    assert last.result == first.result


def test_a_relative_folder_is_below_that_of_the_worker() -> None:
    probe = call("import os; result = os.getcwd()", folder=Path())
    before, _, after = run(probe, call("import os; os.chdir('/')"), probe)
    assert before.result == after.result


def test_a_seed_is_not_that_of_the_next_task() -> None:
    _, number = results("import random\nrandom.seed(1)", "import random\nresult = random.random()")
    assert number != random.Random(1).random()  # noqa: S311 - no secret


@pytest.mark.parametrize(
    "spoil",
    [
        "import noetl.guest.request_loop as m\nm.answer_request = lambda *a: m.CodeAnswer(result='evil')",
        "import noetl.guest.task as m\nm._run_code = lambda *a: 'evil'",
        "import noetl.guest.task as m\ndef evil(request, module): return 'evil'\nm._run_code.__code__ = evil.__code__",
        f"{EQUAL}import noetl.guest.task as m\nm._run_code = Equal()",
        "import noetl.guest.code as m\nm.CompiledCode.run = lambda *a: ('evil',)",
        "import noetl.guest.process_state as m\nm.ProcessState.restore = lambda *a: True\nm.ProcessState.enter = exit",
        "import noetl.guest.process_state as m\nm.read_fixed = list\nimport os\nos.umask(0)",
        "import noetl.guest.request_loop as m\nsend = m._send\nm._send = lambda p, f: send(p, f.replace(b'9', b'0'))",
        "import noetl.guest.request_loop as m\nm.answer_frame = lambda a, r: m.pack(m.CodeAnswer(result='evil'))",
        "import contextlib\ncontextlib.suppress.__enter__ = lambda self: 1 / 0",
    ],
)
def test_replacing_what_runs_the_code_does_nothing_to_the_next_task(spoil: str) -> None:
    secret = "import os\nresult = [os.getpid(), os.umask(0o22), args]"
    first, spoilt, last = run(call(PID), call(spoil), call(secret, args={"key": "s3cr3t99"}))
    assert spoilt.error is None
    assert last.error is None
    assert last.result[0] != first.result
    assert last.result[2] == {"key": "s3cr3t99"}
    assert last.result[1] != 0


@pytest.mark.parametrize(
    "spoil",
    [
        "import sys\nsys.addaudithook(lambda *a: None)",
        "import os\nos.putenv('LEAK', '1')",
        "import os\nos.register_at_fork(before=print)",
    ],
)
def test_a_process_changed_in_ways_that_cannot_be_read_is_replaced(spoil: str) -> None:
    first, _, last = results(PID, spoil, PID)
    assert first != last


@pytest.mark.parametrize(
    "code",
    [
        "import pandas; result = int(pandas.DataFrame({'a': [1]}).a.sum())",
        "import pyarrow, numpy; result = len(pyarrow.table({'a': numpy.arange(3)}))",
        "import duckdb; result = duckdb.connect().execute('select 1').fetchall()",
        "import asyncio; asyncio.run(asyncio.sleep(0))",
        "import subprocess; subprocess.run(['true'], check=True)",
        "import logging; logging.warning('x')",
        "import threading; t = threading.Thread(target=print); t.start(); t.join()",
        "import tempfile, shutil; shutil.rmtree(tempfile.mkdtemp())",
        "import platform, uuid, datetime, socket; platform.uname(); uuid.getnode(); datetime.datetime.strptime('1', '%d')",
        "import requests, importlib.metadata, encodings.idna, concurrent.futures, multiprocessing, sqlite3, ssl, zlib",
        "import warnings, functools\nwith warnings.catch_warnings(): warnings.simplefilter('ignore')",
        "class Node: pass\nnode = Node(); node.self = node; node.file = open('/dev/null')",
    ],
)  # fmt: skip
def test_honest_code_keeps_its_process(code: str) -> None:
    outcomes: list[Any] = run(call(PID), call("import os\n" + code), call("import os\n" + code), call(PID))
    assert [outcome.error for outcome in outcomes] == [None] * 4
    assert outcomes[0].result == outcomes[3].result

import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bench import machine
from bench.machine import describe_interpreter, describe_machine
from bench.process_memory import peak_bytes

HOLDS_MEMORY = "memory = bytearray(80_000_000); print(flush=True); input()"
HAS_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS_MEMORY!r}])"


def test_the_build_of_the_interpreter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'", "PY_CFLAGS": "-O2 -Wall -O3"}
    monkeypatch.setattr(sysconfig, "get_config_vars", lambda: settings)
    fast = describe_interpreter()
    assert platform.python_version() in fast
    assert platform.python_compiler() in fast
    assert fast.endswith(", profile-guided, link-time optimised, -O3")
    monkeypatch.setattr(sysconfig, "get_config_vars", lambda: {"CONFIG_ARGS": None})
    assert describe_interpreter().endswith(", not profile-guided, not link-time optimised")


def test_the_file_system_is_that_of_the_data(tmp_path: Path) -> None:
    described = describe_machine(tmp_path)
    assert described["fdatasync of 4 KiB"].endswith(" ms")
    assert described["processor"].endswith(" cores")
    if sys.platform == "linux":
        assert described["file system"] != "unknown"
        assert machine._file_system(Path("/proc")) == "proc"


@pytest.mark.parametrize("program", [HOLDS_MEMORY, HAS_CHILD])
def test_the_memory_of_a_process_is_that_of_its_children_too(program: str) -> None:
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 80_000_000 < peak_bytes([process.pid]) < 400_000_000
        process.communicate(b"\n")


def test_a_process_that_has_ended_has_no_memory() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert peak_bytes([process.pid]) == 0

"""A package outside the project adds a tool kind through the same door as the built-ins."""

import json
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from noetl.loader import installed_kinds

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: greet, path: tests/greet }
workflow:
  - step: start
    tool: { kind: greet, whom: Ada }
"""

MODULE = """\
from typing import Annotated

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Kind


class GreetInputs(Struct, forbid_unknown_fields=True):
    whom: Annotated[str, Meta(description="Who is greeted.")]


KIND = Kind(name="greet", summary="Says hello.", inputs=GreetInputs)
"""

DECLARED = """\
import noetl


@noetl.tool("greet")
async def greet(whom: str) -> str:
    return f"Hello {whom}"
"""

PLAIN = """\
async def hello(whom: str) -> str:
    return f"Hello {whom}"
"""

RUNNING = """\
import asyncio
from pathlib import Path
from noetl.loader import installed_kinds
from noetl.ports.tool import Call
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.host.worker_tools import Tools
tool = Tools(installed_kinds()).get("greet")
call = Call(execution_id="x", task="t", kind="greet", inputs={"whom": "Ada"}, args={}, spec={}, prev=None,
            attempt=1, idempotency_key="k", timeout=9.0, folder=Path(), log=print,
            objects=ResultStoreObjects(MemoryResults(), "x"))
print(asyncio.run(tool.run(call)).result)
"""

CHILD = """\
import json, sys
import noetl
from noetl.loader import schema
problems = [[p.line, p.column, p.code, p.message] for p in noetl.validate(sys.argv[1])]
print(json.dumps({"problems": problems, "schema": "greet task" in schema()["$defs"]}))
"""


def install(folder: Path, module: str, entry: str) -> None:
    """A real distribution, as an installer would leave it."""
    (folder / "greet_tool.py").write_text(module)
    info = folder / "greet_tool-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greet-tool\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[noetl.tools]\ngreet = {entry}\n")


def run(folder: Path, playbook: str, child: str = CHILD) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{child}"
    return subprocess.run([sys.executable, "-c", code, playbook], capture_output=True, text=True, check=False)


def test_an_installed_package_adds_a_kind_with_typed_inputs(tmp_path: Path) -> None:
    install(tmp_path, MODULE, "greet_tool:KIND")
    output = json.loads(run(tmp_path, PLAYBOOK).stdout)
    assert output == {"problems": [], "schema": True}


def test_its_inputs_are_checked_like_any_other(tmp_path: Path) -> None:
    install(tmp_path, MODULE, "greet_tool:KIND")
    output = json.loads(run(tmp_path, PLAYBOOK.replace("whom: Ada", "who: Ada")).stdout)
    assert [6, 26, "unknown-key", "a task of kind `greet` has no key `who`"] in output["problems"]


@pytest.mark.parametrize(("module", "entry"), [(DECLARED, "greet_tool:greet"), (PLAIN, "greet_tool:hello")])
def test_a_package_may_bring_a_function(tmp_path: Path, module: str, entry: str) -> None:
    install(tmp_path, module, entry)
    assert json.loads(run(tmp_path, PLAYBOOK).stdout) == {"problems": [], "schema": True}
    assert run(tmp_path, PLAYBOOK, RUNNING).stdout == "Hello Ada\n"


def test_a_function_that_cannot_be_a_tool_is_named(tmp_path: Path) -> None:
    install(tmp_path, PLAIN.replace("    return", "    yield"), "greet_tool:hello")
    output = run(tmp_path, PLAYBOOK).stderr
    assert "`greet_tool:hello` cannot be loaded: the tool `greet` yields values" in output


def test_without_the_package_the_kind_is_unknown(tmp_path: Path) -> None:
    output = json.loads(run(tmp_path, PLAYBOOK).stdout)
    assert output["problems"] == [[6, 19, "unknown-kind", "there is no tool kind `greet`"]]


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    install(tmp_path, "raise ImportError('no driver')", "greet_tool:KIND")
    assert (
        "PluginBroken: the tool package `greet_tool:KIND` cannot be loaded: no driver"
        in run(tmp_path, PLAYBOOK).stderr
    )


def test_a_package_that_brings_something_else_is_named(tmp_path: Path) -> None:
    install(tmp_path, "KIND = 1", "greet_tool:KIND")
    assert "`greet` (greet_tool:KIND) is no tool kind" in run(tmp_path, PLAYBOOK).stderr


def test_two_packages_cannot_claim_one_kind(tmp_path: Path) -> None:
    install(tmp_path, MODULE.replace('name="greet"', 'name="http"'), "greet_tool:KIND")
    assert (
        "`http` is registered twice, the second time by the package greet-tool 1.0"
        in run(tmp_path, PLAYBOOK).stderr
    )


def test_built_in_kinds_come_through_the_same_door(tmp_path: Path) -> None:
    """What an entry point names may be one of them: registered again, it is the same."""
    install(tmp_path, "from noetl.tools.http.kind import KIND", "greet_tool:KIND")
    output = run(tmp_path, PLAYBOOK.replace("greet, whom: Ada", "http, url: 'http://a.b'"))
    assert json.loads(output.stdout)["problems"] == []


def test_the_extra_that_a_kind_names_can_be_installed() -> None:
    extras = set(metadata("noetl").get_all("Provides-Extra") or ())
    assert {kind.extra for kind in installed_kinds() if kind.extra} <= extras

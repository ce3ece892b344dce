"""`noetl tools`: the kinds that there are, and what a task of one takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from noetl.dsl.document.kinds import Kind
from noetl.tools.kind_registry import BUILTIN
from tests.cli.command_line import environment, run


def test_every_kind_is_listed_with_what_it_does(tmp_path: Path) -> None:
    ran = run("tools", "list", cwd=tmp_path)
    assert ran.code == 0
    head, *rows = ran.out.splitlines()
    assert head.split() == ["KIND", "EFFECT", "FROM", "RUNS", "HERE", "DOES"]
    for kind, row in zip(BUILTIN, rows, strict=True):
        assert row.split()[:3] == [kind.name, kind.effect, "noetl"]
        assert row.endswith(kind.summary)


def test_the_list_for_programs(tmp_path: Path) -> None:
    tools = {tool["kind"]: tool for tool in run("tools", "list", "-o", "json", cwd=tmp_path).json["tools"]}
    assert list(tools) == [kind.name for kind in BUILTIN]
    assert tools["noop"] == {
        "kind": "noop",
        "summary": "Does nothing: passes `_prev` through, or gives its `args` as the result.",
        "effect": "pure",
        "from": "noetl",
        "extra": None,
        "missing": [],
        "runs": True,
    }
    assert {name: tool["extra"] for name, tool in tools.items() if tool["extra"]} == {
        kind.name: kind.extra for kind in BUILTIN if kind.extra
    }


WITHOUT = """\
import importlib.metadata, sys
hidden = set(sys.argv[1].split(","))
found = importlib.metadata.distribution
def distribution(name):
    if name in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.distribution = distribution
from noetl.cli import main
main(sys.argv[2:])
"""


def test_a_driver_that_is_missing_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    def without(packages: str, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT, packages, "tools", *arguments],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    rows = {row.split()[0]: row for row in without("duckdb,psycopg", "list").splitlines()}
    assert "pip install 'noetl[duckdb]'" in rows["duckdb"]
    assert "pip install 'noetl[postgres]'" in rows["postgres"]
    assert "pip install" not in rows["s3"]
    assert "runs here  pip install 'noetl[duckdb]'" in without("duckdb", "show", "duckdb")


@pytest.mark.parametrize("arguments", [["list"], ["show", "duckdb"], ["show", "quantum"]], ids=" ".join)
def test_looking_imports_no_driver(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from noetl.cli import main\n"
        "try:\n"
        "    main(['tools', *sys.argv[1:]])\n"
        "finally:\n"
        "    print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    drivers = {"duckdb", "pyarrow", "psycopg", "obstore", "hvac", "qiskit", "aiohttp"}
    assert not drivers & set(child.stderr.split())


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.name)
def test_a_kind_is_shown_with_everything_it_takes(kind: Kind, tmp_path: Path) -> None:
    ran = run("tools", "show", kind.name, "-o", "json", cwd=tmp_path)
    inputs = {entry["name"]: entry for entry in ran.json["inputs"]}
    assert set(kind.inputs.__struct_encode_fields__) <= set(inputs)
    assert all(entry["type"] and entry["description"] for entry in inputs.values())
    spelt = {spelling for entry in inputs.values() for spelling in entry["spellings"]}
    assert set(kind.spellings) - spelt <= {"payload"}  # for `args`, which is no input
    knobs = {entry["name"]: entry["default"] for entry in ran.json["knobs"]}
    assert {knob: knobs[knob] for knob in kind.defaults} == dict(kind.defaults)
    common = {entry["name"] for entry in ran.json["common_knobs"]}
    assert set(kind.spec.__struct_encode_fields__) <= common | set(knobs)
    assert (ran.json["result"], ran.json["example"]) == (kind.result, kind.example)


def test_a_page_for_people(tmp_path: Path) -> None:
    page = run("tools", "show", "http", cwd=tmp_path).out
    assert page.startswith("http: Sends an HTTP request.\n")
    assert "  url: text, required, also spelt endpoint\n      Address" in page
    assert '  method: `DELETE`, `GET`, `HEAD`, `OPTIONS`, `PATCH`, `POST`, `PUT`, default "GET"\n' in page
    assert "\nKnobs, under `spec`\n  timeout: number ≥ 0 or mapping\n" in page
    assert "  timeout.connect: number ≥ 0\n" in page
    assert "  follow_redirects: `true` or `false`, default true\n" in page
    assert "  outcome.http: " in page
    assert "\nExample\n  name: order\n  kind: http\n" in page


def test_a_kind_that_is_not_there_gets_a_suggestion(tmp_path: Path) -> None:
    ran = run("tools", "show", "htpt", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "noetl: there is no tool kind `htpt`\n  hint: did you mean `http`?\n"
    far = run("tools", "show", "zzz", "-o", "json", cwd=tmp_path)
    assert far.code == 2
    assert far.json["error"] == {
        "code": "unknown-kind",
        "message": "there is no tool kind `zzz`",
        "hint": "`noetl tools list` lists all kinds",
    }

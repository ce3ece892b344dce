"""Help: grouped for people, fast for everybody, and the documentation agrees with it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from noetl.cli.app import COMMANDS, SECTIONS, app
from tests.cli.command_line import environment, run

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(app, info_name="noetl")
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for nested in command.list_commands(context):
                inner = command.get_command(context, nested)
                assert inner is not None
                yield f"{name} {nested}", inner
        else:
            yield name, command


def test_help_groups_the_commands(tmp_path: Path) -> None:
    help_text = run("--help", cwd=tmp_path).out
    listed = [line.split()[0] for line in help_text.partition("\nWrite:")[2].splitlines() if line.strip()]
    assert "\nSet up:\n" in help_text
    assert [word for word in listed if word in COMMANDS] == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says_of_itself(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    summary = next(section[name] for section in SECTIONS.values() if name in section)
    assert command.get_short_help_str(limit=100).rstrip(".") == summary.rstrip(".")


def test_help_and_version_import_nothing_heavy(tmp_path: Path) -> None:
    for flag in "--help", "--version":
        code = (
            "import sys\n"
            "from noetl.cli import main\n"
            "try:\n"
            f"    main(['{flag}'])\n"
            "finally:\n"
            "    print(*sorted(sys.modules), file=sys.stderr)\n"
        )
        child = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        modules = child.stderr.split()
        assert not {"jinja2", "yaml", "rich", "msgspec", "asyncio"} & set(modules)
        assert not [name for name in modules if name.startswith("noetl.cli.command.")]


def test_version_is_the_installed_one(tmp_path: Path) -> None:
    ran = run("--version", cwd=tmp_path)
    assert ran.code == 0
    assert ran.out.startswith("noetl ")


@pytest.mark.parametrize(("name", "command"), list(all_commands()))
def test_every_command_and_option_is_documented(name: str, command: click.Command) -> None:
    _, _, after = DOCS.read_text().partition(f"\n### `noetl {name}")
    section = after.split("\n### ")[0]
    assert section, f"docs/cli.md has no section on `noetl {name}`"
    for parameter in command.params:
        spellings = (
            parameter.opts
            if isinstance(parameter, click.Option)
            else [parameter.make_metavar(click.Context(command))]
        )
        for spelling in spellings:
            plain = spelling.strip("[]{}.…")
            # What every command takes stands once, above them all.
            shared = "output" in parameter.opts[-1]
            assert plain in (DOCS.read_text() if shared else section), f"`noetl {name}` has {plain}"


@pytest.mark.parametrize("name", [name for name, _ in all_commands()])
def test_every_command_has_help_for_every_option(name: str, tmp_path: Path) -> None:
    ran = run(*name.split(), "--help", cwd=tmp_path)
    assert ran.code == 0
    command = dict(all_commands())[name]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert all(option.help for option in options)
    assert all(option.opts[-1] in ran.out for option in options)


HEAVY = (
    "aiohttp",
    "cryptography",
    "duckdb",
    "jsonpath_rfc9535",
    "obstore",
    "psycopg",
    "pyarrow",
    "qiskit",
    "rich",
)


def modules_after(cwd: Path, *arguments: str) -> set[str]:
    """What a command has imported when it is done."""
    code = (
        f"import sys\nfrom noetl.cli import main\ntry:\n    main({list(arguments)!r})\nfinally:\n"
        "    print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    return set(ran.stderr.split())


def write_playbook(folder: Path) -> None:
    playbook = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkload: {n: 1}\n"
    playbook += "workflow:\n- {step: start, tool: {kind: noop, args: {a: [1, x]}}, next: {arcs: [{step: end, when: '{{ workload.n > 0 }}'}]}}\n"
    playbook += "- {step: end, tool: {kind: noop}}\n"
    (folder / "a.yaml").write_text(playbook)


def test_a_run_imports_only_what_its_tasks_need(tmp_path: Path) -> None:
    write_playbook(tmp_path)
    assert not set(HEAVY) & modules_after(tmp_path, "run", "a.yaml", "-q")


def test_looking_at_an_execution_imports_nothing_that_runs_one(tmp_path: Path) -> None:
    write_playbook(tmp_path)
    modules_after(tmp_path, "run", "a.yaml", "-q")
    running = (
        *("noetl.worker", "noetl.local", "noetl.api", "noetl.engine.scheduler", "noetl.engine.service"),
        *("noetl.loader", "noetl.dsl.compiler", "noetl.tools", "jinja2", "yaml", "importlib.metadata"),
    )
    imported = modules_after(tmp_path, "executions", "show", "latest")
    assert "noetl.kernel.explain.explainer" in imported
    assert {name for name in imported if name.startswith(running)} == set()


def test_a_run_reads_a_new_document_once(tmp_path: Path) -> None:
    write_playbook(tmp_path)
    code = (
        "import sys\nfrom noetl.dsl import compiler\nfrom noetl.cli import main\n"
        "compile_playbook, names = compiler.compile_playbook, []\n"
        "def counted(text, name, *others):\n    names.append(name)\n"
        "    return compile_playbook(text, name, *others)\n"
        "compiler.compile_playbook = counted\n"
        "try:\n    main(['run', 'a.yaml', '-q'])\nfinally:\n    print(*names, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.split()) == (0, ["a.yaml"])

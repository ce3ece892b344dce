"""The modules that `libs` names are looked for as tasks would import them, before anything runs."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from noetl.dsl.document.playbook import Playbook, Position
from noetl.model.json import Json
from noetl.tools.host.worker_tools import UnrunnableTask
from noetl.tools.python.lib_modules import find_module_error, names_modules, tasks_without_modules
from tests.playbooks import playbook_of

NOT_FOUND = "`libs` names the module `{}`, which is not installed"


def playbook_with(libs: Json, script: Json = None) -> Playbook:
    """Its second step, to which no arc leads, has a task with these `libs`."""
    code = {"script": script} if script is not None else {"code": "result = 1"}
    task = json.dumps({"name": "work", "kind": "python", **code, "libs": libs})
    return playbook_of(
        f"workload: {{m: math}}\nworkflow:\n- {{step: first, tool: {{kind: noop}}}}\n- step: second\n  tool:\n  - {task}\n"
    )


def missing(libs: Json, script: Json = None, folder: Path = Path()) -> list[str]:
    """The reasons why the task cannot run."""
    return [
        task.reason
        for task in tasks_without_modules(playbook_with(libs, script).workflow, str(folder.absolute()))
    ]


@pytest.mark.parametrize(
    "lib",
    [
        "math",
        "os.path",
        "xml.dom.minidom",
        "msgspec",
        "__main__",
        "sys",
        {"from": "os", "import": "path"},
        {"from": "xml.etree", "import": "ElementTree"},
        {"from": "math"},
        {"from": "math", "import": "floor"},
    ],
    ids=str,
)
def test_what_can_be_imported_is_here(lib: Json) -> None:
    assert missing({"x": lib}) == []


@pytest.mark.parametrize(
    ("lib", "module"),
    [
        ("no_such_module", "no_such_module"),
        ("no_such.inner", "no_such.inner"),
        ("json.no_such", "json.no_such"),
        ("math.no_such", "math.no_such"),
        ({"from": "no_such_module", "import": "thing"}, "no_such_module"),
        ({"from": "no_such_module"}, "no_such_module"),
    ],
    ids=str,
)
def test_a_module_that_is_not_here_is_found(lib: Json, module: str) -> None:
    assert [reason.partition(", which")[0] for reason in missing({"x": lib, "y": "math"})] == [
        f"`libs` names `{module}.thing`"
        if isinstance(lib, dict) and "import" in lib
        else f"`libs` names the module `{module}`"
    ]


def test_nothing_is_imported_for_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "loud_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "inner.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing({"a": "loud_package", "b": "loud_package.inner"}) == []
    assert "loud_package" not in sys.modules


def test_of_modules_that_a_package_makes_itself_only_an_import_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "making_package").mkdir()
    (tmp_path / "making_package" / "__init__.py").write_text(
        "import sys, types\nsys.modules['making_package.made'] = types.ModuleType('making_package.made')\n"
    )
    (tmp_path / "raising_package").mkdir()
    (tmp_path / "raising_package" / "__init__.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert missing({"a": "making_package.made"}) == []
    assert missing({"a": "making_package.gone"}) == [NOT_FOUND.format("making_package.gone")]
    assert missing({"a": "raising_package.inner"}) == []  # the task says what is wrong with it
    assert not {"making_package", "raising_package"} & sys.modules.keys()


def test_of_a_package_without_code_what_is_imported_must_be_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_namespace" / "there").mkdir(parents=True)
    (tmp_path / "bare_namespace" / "there" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing({"a": {"from": "bare_namespace", "import": "there"}}) == []
    assert missing({"a": {"from": "bare_namespace", "import": "gone"}}) == [
        "`libs` names `bare_namespace.gone`, which is not installed"
    ]


def test_what_is_installed_since_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert missing({"a": "comes_later"}) == [NOT_FOUND.format("comes_later")]
    (tmp_path / "comes_later.py").touch()
    assert missing({"a": "comes_later"}) == []


@pytest.mark.parametrize(
    "libs", ["{{ workload.m }}", {"a": "{{ workload.m }}"}, {"a": {"from": "{{ workload.m }}"}}]
)
def test_a_name_that_is_computed_is_known_only_when_the_task_runs(libs: Json) -> None:
    assert missing(libs) == []
    assert not names_modules(playbook_with(libs).workflow)


def test_beside_a_name_that_is_computed_the_others_are_looked_for() -> None:
    assert missing({"a": "{{ workload.m }}", "b": "no_such_module"}) == [NOT_FOUND.format("no_such_module")]


def test_a_script_imports_from_its_own_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "beside_the_script.py").touch()
    libs: Json = {"a": "beside_the_script"}
    scripts: list[Json] = ["jobs/clean.py", {"uri": "jobs/clean.py", "source": {"type": "file"}}]
    for script in scripts:
        assert missing(libs, script, tmp_path) == []
        assert missing(libs, script, tmp_path / "elsewhere") == [NOT_FOUND.format("beside_the_script")]
    assert missing(libs, f"file://{tmp_path}/jobs/clean.py") == []
    assert missing(libs, "https://example.com/jobs/clean.py", tmp_path) != []
    assert missing(libs, "{{ workload.m }}") == []
    monkeypatch.chdir(tmp_path)
    assert missing(libs, "jobs/clean.py", tmp_path / "elsewhere") == []


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("no_such_module", ": `{} -m pip install no_such_module`"),
        ("skimage", ": `{} -m pip install scikit-image`"),
        ("no_such.inner", ""),
    ],
)
def test_the_task_is_named_with_its_place_and_what_to_install(module: str, hint: str) -> None:
    playbook = playbook_with({"x": module})
    assert tasks_without_modules(playbook.workflow, "/") == (
        UnrunnableTask(
            step="second",
            task="work",
            kind="python",
            position=Position(9, 14),
            reason=NOT_FOUND.format(module),
            hint="install the package that brings it" + hint.format(sys.executable),
        ),
    )


def test_an_error_names_all_of_them() -> None:
    steps = playbook_with({"x": "no_such.x", "y": "math", "z": "no_such.z"}).workflow
    error = asyncio.run(find_module_error(steps, "/"))
    assert error is not None
    of_task = "task `work` of step `second`: `libs` names the module `no_such.{}`, which is not installed; "
    hint = "install the package that brings it"
    assert (error.kind, error.message) == (
        "not_found",
        f"{of_task.format('x')}{hint}; {of_task.format('z')}{hint}",
    )
    assert asyncio.run(find_module_error(playbook_with({"y": "math"}).workflow, "/")) is None
    assert asyncio.run(find_module_error(playbook_with({}).workflow, "/")) is None

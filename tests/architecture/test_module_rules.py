"""The rules for modules that a program can check; what they are for is in CONTRIBUTING.md."""

import ast
import re

import pytest

from tests.architecture.source_tree import FOLDERS, ROOT, Module, importers, modules

SMALL = 60
"""Lines below which a module with one importer belongs into that."""
SMALL_MODULES = {
    "noetl.engine.execution_timers": "the times of one process, apart from those that a server has in its store",
    "noetl.engine.value_transfer": "what one execution hands to another, apart from who starts and ends them",
    "noetl.expr.analysis.comparisons": "syntax trees stay in `expr`, what the checks make of them does not",
    "noetl.testing.simulator.simulation_report": "what a simulation says, apart from the program that prints it",
    "noetl.tools.noop.kind": "a kind is a package",
    "noetl.tools.workbook.kind": "a kind is a package",
    "noetl.worker.value_cache": "a cache with a bound, apart from the runner",
}
"""Small modules that stay apart from their one importer, and why."""
SUPPRESSION = re.compile(
    r"#\s*(noqa|type: ignore)\b(:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|\[[a-z-]+(,\s*[a-z-]+)*\])?(?P<reason>.*)"
)


def is_small(module: Module) -> bool:
    return module.stem not in ("__init__", "__main__") and len(module.text.splitlines()) < SMALL


def test_a_small_module_with_one_importer_is_in_its_importer() -> None:
    users = importers()
    small = {module.name for module in modules("src") if is_small(module) and len(users[module.name]) == 1}
    assert small == set(SMALL_MODULES)


def test_no_module_only_passes_on_what_others_define() -> None:
    passing = []
    for module in modules("src"):
        body = [node for node in module.tree.body if not isinstance(node, ast.Expr)]
        imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [
            node
            for node in body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        if body and len(imports) + len(names) == len(body) and module.stem != "__main__":
            passing.append(module.name)
    assert passing == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_who_silences_a_check_says_why(folder: str) -> None:
    silent = []
    for module in modules(folder):
        for number, line in enumerate(module.text.splitlines(), 1):
            match = SUPPRESSION.search(line)
            if match and '"' not in line[: match.start()].split("#")[-1] and not match["reason"].strip(" -"):
                silent.append(f"{module.path}:{number}")
    assert silent == []


def test_the_marker_of_references_is_written_once() -> None:
    """`$noetl` stands in one module; all others use its constants."""
    spelled = [
        module.name
        for module in modules("src")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and (
            node.value in ("$noetl", b"$noetl") or (isinstance(node.value, bytes) and b"$noetl" in node.value)
        )
    ]
    assert spelled == ["noetl.model.reference"]


def test_an_empty_file_is_only_what_makes_a_package() -> None:
    empty = [module.path for folder in FOLDERS for module in modules(folder) if not module.tree.body]
    assert [path for path in empty if not path.endswith("__init__.py")] == []
    assert all((ROOT / path).parent.name != "tests" for path in empty)

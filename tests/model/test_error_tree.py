"""The tree of errors in the documentation of `noetl.model.errors` is the one there is."""

import ast
import re
from pathlib import Path

from noetl.model import errors

SOURCE = Path(errors.__file__).parents[2]
LINE = re.compile(r"([│├└─ ]*)(\w+)(?: +\((noetl[\w.]*)\) \S.*)?")


def documented_tree() -> dict[str, tuple[str, str]]:
    """Of each error in the docstring its parent and the package that raises it."""
    tree: dict[str, tuple[str, str]] = {}
    branch: list[str] = []
    for line in (errors.__doc__ or "").splitlines()[2:]:
        match = LINE.fullmatch(line)
        assert match is not None, line
        indent, name, package = match.groups()
        del branch[len(indent) // 4 :]
        if branch:
            tree[name] = (branch[-1], package)
        branch.append(name)
    return tree


def defined_tree() -> dict[str, tuple[str, str]]:
    """Of each public class that descends from `NoetlError` its parent and its module, read from the source."""
    classes = [
        (node.name, ast.unparse(node.bases[0]).rpartition(".")[2], module_of(path))
        for path in SOURCE.joinpath("noetl").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.bases and not node.name.startswith("_")
    ]
    error_classes: dict[str, tuple[str, str]] = {}
    waiting = ["NoetlError"]
    while waiting:
        parent = waiting.pop()
        children = {name: (base, module) for name, base, module in classes if base == parent}
        waiting += children
        error_classes |= children
    return error_classes


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def test_the_tree_of_errors_is_complete_and_true() -> None:
    tree, classes = documented_tree(), defined_tree()
    assert {name: parent for name, (parent, _) in tree.items()} == {
        name: parent for name, (parent, _) in classes.items()
    }
    for name, (_, package) in tree.items():
        assert f"{classes[name][1]}.".startswith(f"{package}."), (name, package, classes[name][1])

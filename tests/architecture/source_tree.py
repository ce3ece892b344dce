"""The source code as data: its modules, what they define and who imports them."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench")


class Module(NamedTuple):
    """`name` is dotted; that of a package is the name of its `__init__`."""

    name: str
    file: Path
    text: str
    tree: ast.Module

    @property
    def stem(self) -> str:
        return self.file.stem

    @property
    def path(self) -> str:
        return self.file.relative_to(ROOT).as_posix()

    def definitions(self) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
        """The classes and functions at its top level."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def modules(folder: str) -> tuple[Module, ...]:
    """All modules below `src`, `tests` or `bench`, in order of their paths."""
    return tuple(_modules(folder))


def _python_files(folder: Path) -> Iterator[Path]:
    """Not those below hidden folders: `bench/.peers` holds the programs of others."""
    for directory, subdirectories, names in os.walk(folder):
        subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
        yield from (Path(directory) / name for name in names if name.endswith(".py"))


def _modules(folder: str) -> Iterator[Module]:
    base = ROOT / "src" if folder == "src" else ROOT
    for file in sorted(_python_files(ROOT / folder)):
        parts = file.relative_to(base).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text("utf-8")
        yield Module(name, file, text, ast.parse(text))


@cache
def importers() -> dict[str, frozenset[str]]:
    """For each module of the package the modules of the package that import it, also when they run."""
    names = {module.name for module in modules("src")}
    found_by: dict[str, set[str]] = {name: set() for name in names}
    for module in modules("src"):
        for target in _imports(module.tree, names):
            if target in names and target != module.name:
                found_by[target].add(module.name)
    return {name: frozenset(users) for name, users in found_by.items()}


def _imports(tree: ast.Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in names else node.module


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every variable, parameter, loop target and function with its line; no attributes, no fields of classes."""
    fields = {
        id(node.target)
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name, node.lineno
            case _:
                pass

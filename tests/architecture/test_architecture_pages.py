"""What ARCHITECTURE.md and docs/glossary.md say of the code is so."""

import ast
import re
from typing import get_args

from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import RunState
from tests.architecture.source_tree import ROOT, modules

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
WALK = re.compile(r"`(?P<file>[\w/]+\.py)`: `(?P<function>[\w.]+)`")
WORD = re.compile(
    r"^\| (?P<word>[^|]+) \| (?P<meaning>[^|]+) \| `(?P<module>[\w.]+):(?P<name>[\w.]+)` \|$", re.MULTILINE
)
TRANSITION = re.compile(r"^\s+(?P<start>\[\*\]|\w+) --> (?P<end>\[\*\]|\w+)", re.MULTILINE)


def defines(tree: ast.AST, dotted: str) -> bool:
    """Whether a module has this class, function, method or constant."""
    first, _, others = dotted.partition(".")
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name == first:
                    return not others or defines(node, others)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name == first and not others:
                    return True
            case _:
                pass
    return False


def test_the_walk_from_the_command_to_the_result_exists() -> None:
    files = {module.path.removeprefix("src/noetl/"): module for module in modules("src")}
    walk = [match.groups() for match in WALK.finditer(ARCHITECTURE)]
    assert len(walk) >= 15
    missing = [
        (file, name) for file, name in walk if file not in files or not defines(files[file].tree, name)
    ]
    assert missing == []


def test_every_word_of_the_glossary_is_in_the_code() -> None:
    by_name = {module.name: module for module in modules("src")}
    words = [match.groupdict() for match in WORD.finditer(GLOSSARY)]
    assert len(words) == sum(line.startswith("| ") for line in GLOSSARY.splitlines()) - 2  # but for the head
    names = [word["word"] for word in words]
    assert names == sorted(names, key=str.lower)
    missing = [
        f"{word['module']}:{word['name']}"
        for word in words
        if word["module"] not in by_name or not defines(by_name[word["module"]].tree, word["name"])
    ]
    assert missing == []


def states_drawn(machine: str) -> set[str]:
    """The states in the picture under this heading."""
    section = ARCHITECTURE.split(f"### {machine}\n", 1)[1].split("```mermaid", 1)[1].split("```", 1)[0]
    transitions = [match.groups() for match in TRANSITION.finditer(section)]
    return {state for pair in transitions for state in pair} - {"[*]"}


def test_the_pictures_show_every_state_that_there_is() -> None:
    token, run, execution = (kind.__annotations__ for kind in (Token, RunState, ExecutionState))
    assert states_drawn("A token") == {*get_args(token["stage"]), "discarded", "consumed"}
    assert states_drawn("A step run") == set(get_args(run["phase"]))
    assert states_drawn("An execution") == set(get_args(execution["status"]))

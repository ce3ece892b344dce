"""Whole documents: recognised, upgraded, written, read again as canonical."""

from pathlib import Path

import pytest

from noetl.dsl.dialects import dialect_of
from noetl.dsl.dialects.yaml_writer import to_yaml
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Sequence
from noetl.loader import examine
from tests.dialects.dialect_upgrade import upgrade_text

DOCUMENTS = Path(__file__).with_name("documents")
NAMES = sorted(path.stem for path in DOCUMENTS.glob("*.yaml") if not path.stem.endswith("_canonical"))


def text_of(name: str) -> str:
    return (DOCUMENTS / f"{name}.yaml").read_text("utf-8")


@pytest.mark.spec("003 §13")
@pytest.mark.spec("004 §1")
@pytest.mark.parametrize("name", NAMES)
def test_a_document_becomes_the_canonical_one_beside_it(name: str) -> None:
    loaded = examine(text_of(name), name)
    assert [problem for problem in loaded.problems if problem.severity == "error"] == []
    assert loaded.dialect == ("v1" if name.startswith("v1") else "draft")
    assert to_yaml(loaded.document) == text_of(f"{name}_canonical")


@pytest.mark.spec("004 §7")
@pytest.mark.parametrize("name", NAMES)
def test_what_was_upgraded_is_canonical_and_stays_as_it_is(name: str) -> None:
    first = examine(text_of(name), name)
    again = examine(text_of(f"{name}_canonical"), name)
    assert again.dialect == "canonical"
    assert again.playbook is not None
    assert first.playbook is not None
    assert again.playbook.hash == first.playbook.hash


@pytest.mark.parametrize("name", NAMES)
def test_every_node_stands_where_something_stands_in_the_file(name: str) -> None:
    text = text_of(name)
    root = compose(text)
    assert isinstance(root, Mapping)
    places = {(node.line, node.column) for node in _nodes(root)}
    upgraded = upgrade_text(text, "v1" if name.startswith("v1") else "draft")
    assert {(node.line, node.column) for node in _nodes(upgraded.root)} <= places


@pytest.mark.parametrize(
    ("line", "declared", "dialect"),
    [
        ("apiVersion: noetl.io/v1", None, "v1"),
        ("apiVersion: noetl.io/v1", "draft", "v1"),
        ("apiVersion: noetl.io/v2", None, "canonical"),
        ("apiVersion: noetl.io/v2", "draft", "draft"),
        ("apiVersion: noetl.io/v2\nmetadata: { dialect: draft }", None, "draft"),
        ("apiVersion: noetl.io/v2\nmetadata: { dialect: other }", None, "canonical"),
        ("apiVersion: noetl.io/v2\nmetadata: draft", None, "canonical"),
        ("apiVersion: noetl.io/v3", "draft", "canonical"),
        ("apiVersion: [noetl.io/v1]", None, "canonical"),
        ("kind: Playbook", "draft", "canonical"),
    ],
)
def test_a_dialect_is_recognised_by_its_version_and_the_callers_word(
    line: str, declared: str | None, dialect: str
) -> None:
    root = compose(line)
    assert isinstance(root, Mapping)
    assert dialect_of(root, declared).dialect == dialect


def _nodes(node: Node) -> list[Node | MappingEntry]:
    nodes: list[Node | MappingEntry] = []
    open_nodes: list[Node] = [node]
    while open_nodes:
        current = open_nodes.pop()
        nodes.append(current)
        if isinstance(current, Sequence):
            open_nodes.extend(current.items)
        elif isinstance(current, Mapping):
            nodes.extend(current)
            open_nodes.extend(entry.value for entry in current)
    return nodes

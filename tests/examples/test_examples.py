from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import pytest
import yaml

from noetl.tools import builtin_kinds

ROOT = Path(__file__).parents[2] / "examples"
FILES = sorted(ROOT.rglob("*.yaml"))
TASK_KEYS = {"name", "kind", "desc", "args", "spec"}

each_example = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))


def read(file: Path) -> dict[str, Any]:
    document = yaml.safe_load(file.read_text())
    assert isinstance(document, dict)
    return document


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def tasks(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for step in document["workflow"]:
        yield from step.get("tool", [])
    yield from document.get("workbook", {}).get("tasks", {}).values()


def rules(value: Any) -> Iterator[Any]:
    """Every guard of the document."""
    if isinstance(value, dict):
        if "when" in value:
            yield value["when"]
        for item in value.values():
            yield from rules(item)
    elif isinstance(value, list):
        for item in value:
            yield from rules(item)


@each_example
def test_an_example_is_filed_under_its_path(file: Path) -> None:
    document = read(file)
    assert document["apiVersion"] == "noetl.io/v2"
    assert document["metadata"]["path"] == str(file.relative_to(ROOT.parent).with_suffix(""))
    assert document["metadata"]["name"] == file.stem
    assert document["metadata"]["description"].endswith(".")


@each_example
def test_the_tasks_of_an_example_have_the_inputs_of_their_kinds(file: Path) -> None:
    for task in tasks(read(file)):
        kind = builtin_kinds().get(task["kind"])
        assert kind is not None
        inputs = {key: value for key, value in task.items() if key not in TASK_KEYS}
        assert set(inputs) <= set(kind.inputs.__struct_encode_fields__)
        spec = {key: value for key, value in task.get("spec", {}).items() if key != "policy"}
        msgspec.convert(spec, kind.spec)
        assert not kind.check or list(kind.check(inputs, spec)) == []


@each_example
@pytest.mark.spec("000 §3.1")
def test_every_expression_of_an_example_parses(file: Path) -> None:
    document = read(file)
    for text in strings(document):
        jinja2.Environment(autoescape=True).parse(text)
    for guard in rules(document):
        assert guard.startswith("{{")
        assert guard.endswith("}}")
        assert guard.count("{{") == 1


@each_example
@pytest.mark.spec("000 §13")
def test_every_step_of_an_example_is_reached_and_leads_on(file: Path) -> None:
    document = read(file)
    steps = {step["step"]: step for step in document["workflow"]}
    assert len(steps) == len(document["workflow"])
    reached = {"start", document.get("executor", {}).get("spec", {}).get("final_step", "start")}
    todo = ["start"]
    while todo:
        step = steps[todo.pop()]
        for arc in step.get("next", {}).get("arcs", []):
            assert "when" in arc or "tool" not in step, "an unguarded arc is taken after a failure, too"
            if "loop" in step:
                assert "step.done" not in arc["when"]
            if arc["step"] not in reached:
                reached.add(arc["step"])
                todo.append(arc["step"])
    assert reached == set(steps)


def test_the_list_names_every_example() -> None:
    listed = (ROOT / "README.md").read_text()
    assert [
        str(file.relative_to(ROOT)) for file in FILES if f"]({file.relative_to(ROOT)})" not in listed
    ] == []

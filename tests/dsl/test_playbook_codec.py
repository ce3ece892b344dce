"""A playbook that is written and read back is the same playbook, in every part."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.playbook_codec import PARTS, PLAYBOOK_FORMAT, decode_playbook, encode_playbook
from noetl.expr.use import Use
from noetl.kernel.explain.explainer import explain
from noetl.kernel.plan import Plan
from tests.golden.golden_files import history
from tests.golden.golden_scenarios import RECORDED
from tests.playbook_parts import EVERYTHING, EXAMPLES, everything
from tests.playbooks import playbook_of

RECORDINGS = sorted(path.stem for path in RECORDED.glob("*.yaml"))


def check_same(playbook: Playbook) -> None:
    copy = decode_playbook(encode_playbook(playbook))
    assert list(everything(copy)) == list(everything(playbook))
    assert all(copy.steps[step.name] is step for step in copy.workflow)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_the_same_when_read_back(path: Path) -> None:
    check_same(playbook_of(path.read_text()))


def test_every_part_of_the_language_is_the_same_when_read_back() -> None:
    check_same(playbook_of(EVERYTHING))


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_history_is_explained_alike_with_the_playbook_that_is_read_back(name: str) -> None:
    golden = history(name)
    check_same(golden.plan.playbook)
    plan = Plan(decode_playbook(encode_playbook(golden.plan.playbook)))
    assert explain(plan, golden.execution_id, golden.events) == explain(
        golden.plan, golden.execution_id, golden.events
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"document": 1}',
        b'{"document": 1, "workflow": ["Nothing", {}]}',
        b'{"document": {}, "workflow": []}',
    ],
)
def test_what_is_no_playbook_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a playbook"):
        decode_playbook(data)


def test_the_format_is_raised_when_the_parts_change() -> None:
    """If this fails: raise PLAYBOOK_FORMAT and write the new digest here."""
    assert (PLAYBOOK_FORMAT, digest()) == (3, "32cfdd1ba6a032e0")


def default_text(value: object) -> str:
    return str(sorted(value) if isinstance(value, frozenset) else value)


def digest() -> str:
    parts: dict[str, type[Struct]] = {**PARTS, "Use": Use}
    fields: list[Any] = [
        [name, field.name, str(field.type), default_text(field.default)]
        for name, part in sorted(parts.items())
        for field in msgspec.structs.fields(part)
    ]
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]

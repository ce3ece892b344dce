"""`noetl.load` and `noetl.validate`: what Python programs use."""

from pathlib import Path

import pytest

import noetl
from noetl.dsl.document.playbook import Jump, RetryTask
from noetl.loader import SourceUnreadable, upgrade

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello, path: tests/hello, version: "2.0" }
workload: { n: 1 }
workflow:
  - step: start
    tool:
      - name: first
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: retry, attempts: 5, backoff: linear, delay: 2 }
              - when: "{{ workload.n < 3 }}"
                then: { do: jump, to: first }
              - else: { then: { do: continue } }
"""


def test_the_public_names_are_these() -> None:
    assert noetl.__all__ == [
        "AsyncClient",
        "CannotRun",
        "Client",
        "Execution",
        "ExecutionFailed",
        "Executions",
        "ExpressionError",
        "ListedExecution",
        "NoetlError",
        "Playbook",
        "PlaybookInvalid",
        "Problem",
        "ServerError",
        "ServerUnreachable",
        "ToolError",
        "arun",
        "load",
        "open",
        "run",
        "tool",
        "validate",
    ]
    assert dir(noetl) == noetl.__all__
    assert all(getattr(noetl, name) is not None for name in noetl.__all__)
    with pytest.raises(AttributeError, match="no attribute `lod`"):
        noetl.lod  # noqa: B018 - asking for it is the test


def test_text_loads_as_a_typed_playbook() -> None:
    playbook = noetl.load(PLAYBOOK)
    assert isinstance(playbook, noetl.Playbook)
    assert (playbook.metadata.name, playbook.metadata.version, playbook.entry) == ("hello", "2.0", "start")
    (task,) = playbook.steps["start"].tasks
    assert task.policy is not None
    assert task.policy.rules[0].then.do == RetryTask(attempts=5, backoff="linear", delay=2.0)
    assert task.policy.rules[1].then.do == Jump("first")


def test_a_playbook_is_frozen() -> None:
    playbook = noetl.load(PLAYBOOK)
    with pytest.raises(AttributeError):
        playbook.entry = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        playbook.workflow[0].name = "other"  # type: ignore[misc]


def test_files_load_by_path_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "hello.yaml"
    path.write_text(PLAYBOOK)
    assert noetl.load(path) == noetl.load(str(path)) == noetl.load(PLAYBOOK)


def test_a_byte_order_mark_is_no_part_of_the_document(tmp_path: Path) -> None:
    path = tmp_path / "hello.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + PLAYBOOK.encode())
    assert noetl.load(path).metadata.name == "hello"


def test_equal_documents_have_equal_hashes() -> None:
    assert noetl.load(PLAYBOOK).hash == noetl.load(PLAYBOOK + "# a comment\n").hash
    assert noetl.load(PLAYBOOK).hash != noetl.load(PLAYBOOK.replace("n: 1", "n: 2")).hash


def test_an_invalid_playbook_raises_with_all_its_problems() -> None:
    broken = PLAYBOOK.replace("noop", "nop").replace("to: first", "to: frist")
    with pytest.raises(noetl.PlaybookInvalid) as caught:
        noetl.load(broken)
    assert [(p.line, p.column, p.code) for p in caught.value.problems] == [
        (9, 15, "unknown-kind"),
        (16, 39, "jump-target"),
    ]
    assert str(caught.value) == "<text>:9:15 unknown-kind there is no tool kind `nop` (and 1 more)"
    assert noetl.validate(broken) == list(caught.value.problems)


def test_an_allowed_kind_need_not_be_known() -> None:
    extended = PLAYBOOK.replace("noop", "teleport")
    assert [p.code for p in noetl.validate(extended)] == ["unknown-kind"]
    assert noetl.validate(extended, allow_kinds=["teleport"]) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no file"), (b"\xff\xfe\x00", "is not UTF-8 text"), ("folder", "cannot be read")],
)
def test_what_cannot_be_read_is_said_clearly(
    tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    path = tmp_path / "hello.yaml"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    with pytest.raises(SourceUnreadable, match=message):
        noetl.load(path)


def test_upgrading_a_canonical_document_keeps_its_meaning() -> None:
    assert noetl.load(upgrade(PLAYBOOK, "hello.yaml")).document == noetl.load(PLAYBOOK).document


def test_text_with_any_line_break_is_text() -> None:
    problems = noetl.validate(
        "apiVersion: noetl.io/v2\rkind: Playbook\rmetadata: {name: a, path: '{{ a b'}\r"
    )
    assert {(problem.line, problem.file) for problem in problems} == {(1, "<text>")}

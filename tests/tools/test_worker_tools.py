"""Which kinds a worker can run, and what runs them."""

import asyncio

import pytest

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.dsl.document.playbook import Position
from noetl.kernel.plan import WAITING_KINDS
from noetl.model.outcome import Outcome, succeeded
from noetl.ports.tool import Call
from noetl.tools.host.worker_tools import ENGINE_KINDS, Tools, UnrunnableTask, unrunnable_tasks
from noetl.tools.kind_registry import builtin_kinds
from tests.playbooks import playbook_of
from tests.tools.python_calls import call


class Closing:
    """Notes that it is closed."""

    made = 0

    def __init__(self) -> None:
        Closing.made += 1
        self.closed = False

    async def run(self, _call: Call) -> Outcome:
        return succeeded(self.closed)

    async def close(self) -> None:
        self.closed = True


class Stuck(Closing):
    async def close(self) -> None:
        raise OSError("stuck")


def unmakeable() -> Closing:
    raise RuntimeError("no memory left")


KINDS = Kinds(
    [
        Kind(name="closing", summary="", effect="pure", implementation=Closing),
        Kind(name="stuck", summary="", implementation=Stuck),
        Kind(name="word", summary=""),
        Kind(name="unmakeable", summary="", implementation=unmakeable),
        Kind(name="driverless", summary="", implementation="no_such_driver:Tool", extra="driver"),
        Kind(name="misnamed", summary="", implementation="noetl.tools.noop.kind:NopTool"),
    ]
)


def _name(implementation: object) -> str:
    return implementation.__name__ if isinstance(implementation, type) else str(implementation).split(":")[-1]


def test_the_built_in_kinds_are_run_by_their_tools() -> None:
    async def scenario() -> dict[str, str]:
        tools = Tools(builtin_kinds())
        by_kind = {kind.name: tools.get(kind.name) for kind in builtin_kinds()}
        await tools.close()
        return {name: type(tool).__name__ for name, tool in by_kind.items() if tool}

    class_names = asyncio.run(scenario())
    class_names.pop("quantum")  # what runs it depends on whether its driver is installed
    expected = {kind.name: _name(kind.implementation) for kind in builtin_kinds()}
    assert class_names == {name: expected[name] for name in class_names}
    assert class_names.keys() | {"quantum"} == expected.keys() - ENGINE_KINDS


def test_what_the_engine_waits_for_it_does_itself() -> None:
    assert WAITING_KINDS <= ENGINE_KINDS


def test_a_tool_is_made_once_when_it_is_first_asked_for() -> None:
    before = Closing.made
    tools = Tools(KINDS)
    assert Closing.made == before
    assert tools.get("closing") is tools.get("closing")
    assert Closing.made == before + 1
    assert (tools.get("word"), tools.get("nothing")) == (None, None)


def test_tools_that_keep_something_for_an_execution_hear_of_its_end() -> None:
    class Notebook(Closing):
        def __init__(self) -> None:
            super().__init__()
            self.forgotten: list[str] = []

        def forget(self, execution_id: str) -> None:
            self.forgotten.append(execution_id)

    tools = Tools(Kinds([Kind(name="notebook", summary="", implementation=Notebook), *KINDS]))
    notebook = tools.get("notebook")
    tools.get("closing")
    tools.forget("x")
    assert isinstance(notebook, Notebook)
    assert notebook.forgotten == ["x"]


def test_the_effect_of_an_unknown_kind_is_the_worst() -> None:
    tools = Tools(KINDS)
    assert [tools.immediate(kind) for kind in ("closing", "stuck", "nothing")] == [True, False, False]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("unmakeable", "the tool kind `unmakeable` cannot be loaded: no memory left; look at the package"),
        ("driverless", "cannot be loaded: No module named 'no_such_driver'; pip install 'noetl[driver]'"),
        ("misnamed", "has no attribute 'NopTool'"),
    ],
)
def test_a_tool_that_cannot_be_made_fails_its_calls_and_says_why(kind: str, message: str) -> None:
    tool = Tools(KINDS).get(kind)
    assert tool is not None
    outcome = asyncio.run(tool.run(call()))
    assert outcome.error is not None
    assert outcome.error.kind == "tool"
    assert message in outcome.error.message
    asyncio.run(tool.close())


def test_closing_closes_all_tools_and_tells_what_went_wrong() -> None:
    async def scenario() -> None:
        tools = Tools(KINDS)
        first, _ = tools.get("closing"), tools.get("stuck")
        assert first is not None
        with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="stuck")):
            await tools.close()
        assert (await first.run(call())).result is True

    asyncio.run(scenario())


def test_nothing_new_is_made_after_the_end() -> None:
    async def scenario() -> Outcome:
        tools = Tools(KINDS)
        await tools.close()
        await tools.close()
        tool = tools.get("closing")
        assert tool is not None
        return await tool.run(call())

    before = Closing.made
    outcome = asyncio.run(scenario())
    assert outcome.error is not None
    assert (outcome.error.kind, Closing.made) == ("cancelled", before)


PLAYBOOK = """\
workflow:
  - step: start
    tool:
      - name: fetch
        kind: http
        url: https://example.com
      - name: store
        kind: word
        command: SELECT 1
      - name: pause
        kind: wait
        seconds: 1
      - name: child
        kind: playbook
        path: tests/child
    next:
      arcs:
        - step: end
  - step: end
    tool:
      - name: greet
        kind: greet
        whom: Ada
"""


def test_the_tasks_that_cannot_run_here_are_listed_with_their_places() -> None:
    unrunnable = unrunnable_tasks(
        playbook_of(PLAYBOOK, allow_kinds=["greet", "word"]), Kinds([*builtin_kinds(), *KINDS])
    )
    assert unrunnable == (
        UnrunnableTask(
            step="start",
            task="store",
            kind="word",
            position=Position(10, 15),
            reason="this release cannot run the tool kind `word`",
            hint="its tasks can be checked, not run",
        ),
        UnrunnableTask(
            step="end",
            task="greet",
            kind="greet",
            position=Position(24, 15),
            reason="the tool kind `greet` is not installed",
            hint="install the package that brings it",
        ),
    )


@pytest.mark.parametrize(
    ("kind", "reason", "hint"),
    [
        ("driverless", "No module named 'no_such_driver'", "pip install 'noetl[driver]'"),
        ("misnamed", "has no attribute 'NopTool'", "look at the package that brings it"),
    ],
)
def test_a_missing_driver_is_found_before_anything_runs(kind: str, reason: str, hint: str) -> None:
    playbook = playbook_of(PLAYBOOK.replace("kind: greet", f"kind: {kind}"), allow_kinds=[kind, "word"])
    kinds = Kinds([*builtin_kinds(), *KINDS])
    (unrunnable,) = [task for task in unrunnable_tasks(playbook, kinds) if task.kind == kind]
    assert reason in unrunnable.reason
    assert unrunnable.hint == hint

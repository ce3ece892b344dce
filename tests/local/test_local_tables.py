"""Tables that tools keep in Arrow's format: values to expressions, references to tools that take them."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pytest
from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.model.outcome import Outcome, succeeded
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, is_table_reference
from noetl.ports.tool import Call
from noetl.stores.results.file_backend import FileResults
from noetl.tools.host.worker_tools import Tools
from noetl.tools.kind_registry import BUILTIN
from tests.local.local_engine import Bench, source

ROWS = 2_500


class Query:
    """Gives a table of `ROWS` rows, as a database would."""

    async def run(self, call: Call) -> Outcome:
        table = pa.table({"id": list(range(ROWS)), "name": [f"row {n}" for n in range(ROWS)]})
        async with call.objects.draft() as draft:
            with pa.OSFile(str(draft.path), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
                out.write_table(table, max_chunksize=400)
            rows = await draft.keep(ARROW_MEDIA_TYPE, type="list", length=ROWS, columns=["id", "name"])
        return succeeded({"rows": rows, "row_count": ROWS})

    async def close(self) -> None: ...


class Given:
    """Says in what form its inputs came."""

    async def run(self, call: Call) -> Outcome:
        forms: dict[str, Any] = {}
        for name, value in {**call.inputs, "prev": call.prev}.items():
            forms[name] = _form(value)
            if isinstance(value, StoredReference):
                async with call.objects.local(value) as path, asyncio.timeout(60):
                    forms[f"{name} file"] = path.read_bytes()[:4] == b"\xff\xff\xff\xff"
        return succeeded(forms)

    async def close(self) -> None: ...


def _form(value: Any) -> Any:
    if isinstance(value, StoredReference):
        return "reference"
    if isinstance(value, dict):
        return {key: _form(item) for key, item in value.items()}
    return f"{len(value)} rows" if isinstance(value, list) else value


class GivenInputs(Struct, frozen=True, kw_only=True):
    tables: Annotated[Any, Meta(description="Kept as they are.")] = None
    other: Annotated[Any, Meta(description="Whole.")] = None


KINDS = Kinds(
    (
        *BUILTIN,
        Kind(name="query", summary="Gives a table.", implementation=Query),
        Kind(
            name="given",
            summary="Says what it got.",
            inputs=GivenInputs,
            takes_references=frozenset({"tables", "args", "_prev"}),
            implementation=Given,
        ),
    )
)


class Tables:
    """Runs playbooks with these kinds."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def end(self, text: str) -> tuple[ExecutionState, Any]:
        """How an execution ends, and its result resolved."""

        async def work(local: Local) -> tuple[ExecutionState, Any]:
            state = await local.wait_for_end(await local.start(source(text)))
            return state, await local.resolve(state.result)

        results = FileResults(self._bench.home.results)
        return self._bench.with_local(work, tools=Tools(KINDS), results=results)

    def run(self, text: str) -> tuple[Any, Any]:
        """The result as it stands in the log, and resolved."""
        state, resolved = self.end(text)
        assert state.status == "completed", state.error
        return state.result, resolved


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    monkeypatch.setattr("noetl.loader.installed_kinds", lambda *_: KINDS)
    return Tables(Bench(tmp_path))


def test_rows_can_be_read_in_expressions(tables: Tables) -> None:
    text = """
workflow:
- step: start
  tool:
  - q: {kind: query}
  - n: {kind: noop, args: {length: "{{ q.rows | length }}", third: "{{ q.rows[2].name }}", last: "{{ q.rows[-1] }}"}}
"""
    result, _ = tables.run(text)
    assert result == {"length": ROWS, "third": "row 2", "last": {"id": 2499, "name": "row 2499"}}


def test_a_table_that_is_handed_on_stays_one(tables: Tables, tmp_path: Path) -> None:
    text = """
workflow:
- step: start
  tool:
  - q: {kind: query}
  - n: {kind: noop}
  next: {arcs: [{step: end, args: {rows: "{{ event.result.rows }}", n: "{{ event.result.rows | length }}"}}]}
- step: end
  tool:
  - {kind: noop, args: {rows: "{{ args.rows }}", n: "{{ args.n }}"}}
"""
    result, resolved = tables.run(text)
    assert is_table_reference(result["rows"])
    assert result["n"] == ROWS
    assert resolved["rows"][7] == {"id": 7, "name": "row 7"}
    stored = [path for path in (tmp_path / ".noetl" / "results").rglob("*") if path.is_file()]
    assert len(stored) == 1, "nothing made a second copy of it"


def test_a_tool_gets_references_where_it_takes_them(tables: Tables) -> None:
    text = """
workflow:
- step: start
  tool:
  - q: {kind: query}
  - g:
      kind: given
      tables: {a: "{{ q.rows }}", b: "{{ q }}"}
      other: "{{ q.rows }}"
"""
    result, _ = tables.run(text)
    assert result["tables"] == {"a": "reference", "b": {"rows": "reference", "row_count": ROWS}}
    assert result["other"] == f"{ROWS} rows"
    assert result["prev"] == {"rows": "reference", "row_count": ROWS}


def test_a_reference_can_be_opened_as_a_file(tables: Tables) -> None:
    text = """
workflow:
- step: start
  tool:
  - q: {kind: query}
  - g: {kind: given, tables: "{{ q.rows }}"}
"""
    result, _ = tables.run(text)
    assert (result["tables"], result["tables file"]) == ("reference", True)


def test_python_gets_the_rows(tables: Tables, tmp_path: Path) -> None:
    text = """
workflow:
- step: start
  tool:
  - q: {kind: query}
  - p: {kind: python, args: {rows: "{{ q.rows }}"}, code: "result = sum(row['id'] for row in rows)"}
"""
    result, _ = tables.run(text)
    assert result == sum(range(ROWS))
    stored = [path for path in (tmp_path / ".noetl" / "results").rglob("*") if path.is_file()]
    assert len(stored) == 1, "the rows were recorded as the table that they are"


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_loop_goes_over_the_rows(tables: Tables, tmp_path: Path, compression: str) -> None:
    text = """
workflow:
- step: start
  tool: [{q: {kind: query, spec: {result: {compression: COMPRESSION}}}}]
  next: {arcs: [{step: each}]}
- step: each
  loop: {in: "{{ start.rows }}", iterator: row, spec: {mode: parallel}}
  tool: [{n: {kind: noop, args: {n: "{{ iter.row.id * 2 }}", all: "{{ iter.row }}"}}}]
"""
    _, resolved = tables.run(text.replace("COMPRESSION", compression))
    assert [item["n"] for item in resolved] == [2 * n for n in range(ROWS)]
    assert resolved[1_234]["all"] == {"id": 1_234, "name": "row 1234"}
    assert not list((tmp_path / ".noetl" / "results").rglob(".*")), "nothing is left unpacked"


@pytest.mark.parametrize(
    "task",
    [
        'n: {kind: noop, args: {first: "{{ q.rows[0] }}"}}',
        'n: {kind: given, other: "{{ q.rows }}"}',
        'n: {kind: noop, set: {ctx.first: "{{ q.rows[0] }}"}}',
    ],
)
def test_a_table_that_is_too_large_is_not_read_as_rows(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.setattr("noetl.kernel.scopes.ROWS_BYTES", 1_000)
    state, _ = tables.end(f"workflow:\n- step: start\n  tool:\n  - q: {{kind: query}}\n  - {task}\n")
    assert state.error is not None
    assert state.error.kind == "limit"
    assert "is not read as rows" in state.error.message

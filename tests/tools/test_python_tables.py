"""Tables and bytes as results and args of the Python tool."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from noetl.model.outcome import Outcome
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, encode_value
from noetl.ports.results import ExecutionObjects
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.python.tool import PythonTool
from tests.tools.python_calls import call

FRAME = """
import pandas
result = pandas.DataFrame({"id": range(20_000), "name": [f"n{i}" for i in range(20_000)]})
"""


class Bench:
    """Calls of one tool whose objects are files."""

    def __init__(self, folder: Path, tool: PythonTool) -> None:
        self.folder = folder
        self.objects: ExecutionObjects = ResultStoreObjects(FileResults(folder), "x")
        self._tool = tool

    async def outcome(self, code: str, **options: Any) -> Outcome:
        return await self._tool.run(msgspec.structs.replace(call(code, **options), objects=self.objects))

    async def result(self, code: str, **options: Any) -> Any:
        outcome = await self.outcome(code, **options)
        assert outcome.error is None, outcome.error
        return outcome.result


def at_bench(folder: Path, work: Callable[[Bench], Awaitable[None]]) -> None:
    async def scenario() -> None:
        tool = PythonTool()
        try:
            await work(Bench(folder, tool))
        finally:
            await tool.close()

    asyncio.run(scenario())
    left = [path.name for path in folder.rglob("*") if path.name.startswith(".")]
    assert left == [], "nothing but stored objects stays"


@pytest.mark.parametrize("isolation", ["pool", "fork", "inline"])
def test_a_large_frame_becomes_an_arrow_object(tmp_path: Path, isolation: str) -> None:
    async def work(bench: Bench) -> None:
        stored = await bench.result(FRAME, spec={"isolation": isolation})
        assert isinstance(stored, StoredReference)
        about = {key: stored[key] for key in ("media_type", "type", "length", "columns")}
        assert about == {
            "media_type": ARROW_MEDIA_TYPE,
            "type": "list",
            "length": 20_000,
            "columns": ["id", "name"],
        }
        assert stored["preview"].startswith('[{"id":0,"name":"n0"},')
        assert stored["preview"].endswith("…")
        async with bench.objects.local(stored) as path:
            with pa.OSFile(str(path)) as file:
                table = pa.ipc.open_stream(file).read_all()
        assert table.slice(19_999).to_pylist() == [{"id": 19_999, "name": "n19999"}]

    at_bench(tmp_path, work)


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("import pandas\nresult = pandas.DataFrame({'a': [1.5, None], 'b': ['x', 'y']})",
         [{"a": 1.5, "b": "x"}, {"a": None, "b": "y"}]),
        ("import pandas\nresult = pandas.DataFrame({'n': [1]}, index=pandas.Index(['k'], name='key'))",
         [{"n": 1, "key": "k"}]),
        ("import pandas\nresult = pandas.DataFrame({'t': pandas.to_datetime(['2026-03-01'])})",
         [{"t": "2026-03-01T00:00:00"}]),
        ("import pyarrow\nresult = pyarrow.table({'a': [1, 2]})", [{"a": 1}, {"a": 2}]),
        ("import pyarrow\nresult = pyarrow.record_batch({'a': [1]})", [{"a": 1}]),
        ("import pyarrow\nresult = pyarrow.table({'a': []})", []),
        ("import pandas\nresult = {'all': [pandas.DataFrame({'a': [1]})]}", {"all": [[{"a": 1}]]}),
    ],
)  # fmt: skip
def test_a_small_table_becomes_rows_wherever_it_stands(tmp_path: Path, code: str, rows: Any) -> None:
    async def work(bench: Bench) -> None:
        assert await bench.result(code) == rows

    at_bench(tmp_path, work)


def test_bytes_become_an_object_and_come_back_as_a_file(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        references = await bench.result("result = {'zip': b'PK' * 3, 'text': bytearray(b'abc')}")
        assert [references[name]["media_type"] for name in references] == ["application/octet-stream"] * 2
        assert (references["zip"]["size"], references["text"]["size"]) == (6, 3)
        code = "result = [zip['size'], open(zip['path'], 'rb').read().decode()]"
        assert await bench.result(code, args=references) == [6, "PKPKPK"]

    at_bench(tmp_path, work)


def test_a_stored_table_is_rows_arrow_or_pandas_as_the_task_asks(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        stored = await bench.result(FRAME)
        for tables, kind in (("rows", "list"), ("arrow", "Table"), ("pandas", "DataFrame")):
            code = "result = [type(rows).__name__, len(rows), type(nested['rows'][0]).__name__]"
            args = {"rows": stored, "nested": {"rows": [stored], "n": 1}}
            assert await bench.result(code, args=args, spec={"tables": tables}) == [kind, 20_000, kind]
        assert await bench.result("result = rows[7]", args={"rows": stored}) == {"id": 7, "name": "n7"}
        assert (
            await bench.result("def main(input):\n  return len(input['rows'])", args={"rows": stored})
            == 20_000
        )
        total = "result = int(rows['id'].sum())"
        assert await bench.result(total, args={"rows": stored}, spec={"tables": "pandas"}) == 199_990_000

    at_bench(tmp_path, work)


def test_a_stored_value_is_the_value(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        async with bench.objects.draft() as draft:
            draft.path.write_bytes(b'{"a": [1, 2], "$$noetl": "mine"}')
            stored = await draft.keep("application/json")
        assert await bench.result("result = value", args={"value": stored}) == {"a": [1, 2], "$noetl": "mine"}
        table = await bench.result(FRAME)
        async with bench.objects.draft() as draft:
            draft.path.write_bytes(encode_value({"rows": table, "n": 1}))
            stored = await draft.keep("application/json")
        code = "result = [len(value['rows']), value['n']]"
        assert await bench.result(code, args={"value": stored}) == [20_000, 1]

    at_bench(tmp_path, work)


def test_a_stored_value_that_is_gone_is_not_found(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        gone = StoredReference({"$noetl": "ref", "key": f"x/{'0' * 64}", "media_type": ARROW_MEDIA_TYPE})
        outcome = await bench.outcome("result = 1", args={"rows": gone})
        assert outcome.error is not None
        assert outcome.error.kind == "not_found"

    at_bench(tmp_path, work)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import pandas\nresult = {'f': pandas.DataFrame({'a': [1, 'x']})}",
            "`$.f` is a `DataFrame` that is no table",
        ),
        ("import pyarrow\nresult = pyarrow.array([1])", "`$` is of type `Int64Array`"),
        (
            "import numpy\nresult = numpy.zeros(3)",
            "`$` is of type `ndarray`, which JSON has no form for: `.tolist()` may give one",
        ),
        ("import numpy\nresult = {'n': numpy.int64(3)}", "`$.n` is of type `int64`"),
        (
            "import pandas\nresult = pandas.Series([3])",
            "`$` is of type `Series`, which JSON has no form for: `.tol",
        ),
        ("result = [b'x' * 10, {1, 2}]", "`$[1]` is of type `set`"),
    ],
)
def test_what_is_no_table_is_an_error_with_its_place(tmp_path: Path, code: str, message: str) -> None:
    async def work(bench: Bench) -> None:
        outcome = await bench.outcome(code)
        assert outcome.error is not None
        assert outcome.error.kind == "python"
        assert message in outcome.error.message

    at_bench(tmp_path, work)
    gc.collect()


def test_files_of_code_that_ends_badly_are_removed(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        code = "class Never(dict):\n  def items(self):\n    while True: pass\nresult = [b'x', Never(a=1)]"
        outcome = await bench.outcome(code, timeout=0.5)
        assert outcome.error is not None
        assert outcome.error.kind == "timeout"

    at_bench(tmp_path, work)

import asyncio

import pytest
from msgspec import structs

from noetl.model.json import Json
from noetl.model.outcome import succeeded
from noetl.tools.noop.kind import NoopTool
from tests.tools.python_calls import call


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [({}, "previous"), ({"args": {"a": 1}}, {"a": 1}), ({"args": {}}, {})],
)
def test_noop_gives_its_own_args_or_passes_the_previous_result_on(
    inputs: dict[str, Json], expected: Json
) -> None:
    with_inputs = structs.replace(call(args={"of": "the token"}), inputs=inputs, prev="previous")
    tool = NoopTool()
    assert asyncio.run(tool.run(with_inputs)) == succeeded(expected)
    asyncio.run(tool.close())

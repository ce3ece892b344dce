"""Large values on their way to a child's code."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.guest.frame import InputFile
from noetl.model.reference import may_hold_marker
from noetl.tools.process.file_exchange import _mark_references
from tests.tools.calls import call_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES))
def test_args_without_a_sign_of_references_are_the_same_looked_through_or_not(args: dict[str, Any]) -> None:
    async def mark() -> tuple[dict[str, Any], list[InputFile]]:
        async with AsyncExitStack() as opened:
            return await _mark_references(call_of("python", {}), args, "rows", opened)

    if not may_hold_marker(args):
        assert asyncio.run(mark()) == (args, [])

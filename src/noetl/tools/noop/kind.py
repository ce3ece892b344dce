from noetl.dsl.document.kinds import Kind
from noetl.model.outcome import Outcome, succeeded
from noetl.ports.tool import Call


class NoopTool:
    """Gives the task's own `args`, an input of this kind, or passes `prev` on if it has none.

    `call.args` would not do: the token's are in it, and they are no reason to drop `prev`.
    """

    async def run(self, call: Call) -> Outcome:
        return succeeded(call.inputs.get("args", call.prev))

    async def close(self) -> None:
        """Nothing is held."""


EXAMPLE = """\
name: total
kind: noop
args: { total: "{{ workload.prices | sum }}" }
"""

KIND = Kind(
    name="noop",
    summary="Does nothing: passes `_prev` through, or gives its `args` as the result.",
    result="The task's `args` if it gives any, else `_prev`.",
    example=EXAMPLE,
    effect="pure",
    takes_references=frozenset({"args", "_prev"}),
    reads=frozenset({"_prev"}),
    implementation=NoopTool,  # itself and not its name: there is nothing to import later
)

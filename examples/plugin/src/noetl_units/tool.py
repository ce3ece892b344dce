"""What runs the kind `convert`. Imported when the first task of it runs, so it may import what it likes."""

from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, inputs_of
from noetl_units.kind import FACTORS, ConvertInputs


class ConvertTool:
    """Knows everything from a table."""

    async def run(self, call: Call) -> Outcome:
        # Whatever goes wrong inside becomes the error of the task.
        return await as_outcome(self._convert(call))

    async def close(self) -> None:
        """Nothing is held."""

    async def _convert(self, call: Call) -> Outcome:
        inputs = inputs_of(call, ConvertInputs)
        for unit in (inputs.from_, inputs.to):
            if unit not in FACTORS:  # an expression gave it, so that no check has seen it
                raise ToolError("input", f"there is no unit `{unit}`")
        (what, factor), (wanted, divisor) = FACTORS[inputs.from_], FACTORS[inputs.to]
        if what != wanted:
            raise ToolError("input", f"a {what} is no {wanted}")
        amount = round(inputs.amount * factor / divisor, call.spec["digits"])
        return succeeded({"amount": amount, "unit": inputs.to})

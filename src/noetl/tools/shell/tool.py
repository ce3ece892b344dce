"""Runs the kind `shell`."""

from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import input_text
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of, refuse_faults
from noetl.tools.process.captured_program import GRACE, exit_outcome, run_captured
from noetl.tools.process.orphan_killer import OrphanKiller
from noetl.tools.process.program import Program
from noetl.tools.shell.kind import ShellInputs, check


class ShellTool:
    """Programs in process groups of their own, none of which outlives its task or the worker."""

    def __init__(self, *, grace: float = GRACE) -> None:
        self._orphan_killer = OrphanKiller()
        self._grace = grace
        self._closed = False

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        self._closed = True
        self._orphan_killer.close()

    async def _attempt(self, call: Call) -> Outcome:
        if self._closed:
            return error_outcome("cancelled", "the worker is ending")
        inputs = inputs_of(call, ShellInputs)
        refuse_faults(check(call.inputs, call.spec))
        program = await run_captured(call, lambda stdin: self._start(call, inputs, stdin), self._grace)
        return exit_outcome(program, call.mask)

    def _start(self, call: Call, inputs: ShellInputs, stdin: int) -> Program:
        command = inputs.command
        return Program(
            ["/bin/sh", "-c", command]
            if isinstance(command, str)
            else [input_text(part) for part in command],
            folder=call.folder / (inputs.cwd or ""),
            env={name: input_text(value) for name, value in (inputs.env or {}).items()},
            stdin=stdin,
            orphan_killer=self._orphan_killer,
        )

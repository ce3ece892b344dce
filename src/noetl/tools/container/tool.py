"""Runs the kind `container`."""

import asyncio
import os
import shutil
import subprocess
from typing import Any
from uuid import uuid4

import msgspec

from noetl.model.outcome import ErrorKind, Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.container.command_line import passed_variables, run_arguments, variables
from noetl.tools.container.kind import ContainerInputs, ContainerSpec, check
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of, refuse_faults
from noetl.tools.process.captured_program import (
    GRACE,
    CapturedProgram,
    exit_outcome,
    last_words,
    run_captured,
)
from noetl.tools.process.orphan_killer import OrphanKiller
from noetl.tools.process.program import Program

_RUNTIMES = ("docker", "podman")
_KNOBS = ("runtime", "memory", "cpus", "processes", "network", "pull")
"""What is its own in `spec`: the rest is checked and used by the worker."""
_INSPECT_SECONDS = 10.0
_REMOVE_SECONDS = 10.0
"""Seconds that are waited for the removal of a container; it goes on afterwards."""
_REMOVE = 'read -r _; exec "$0" rm --force --volumes "$1"'
"""Waits for the end of its input, which comes with that of the worker, too, however it ends."""
_REMOVE_AT_ONCE = 'read -r _; "$0" rm --force --time=0 --volumes "$1" || exec "$0" rm --force --volumes "$1"'
"""Podman gives a container ten seconds more, which has had its time; before version 4 it cannot be told not
to."""


class ContainerTool:
    """Containers, none of which outlives its task or the worker."""

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
        inputs = inputs_of(call, ContainerInputs)
        refuse_faults(check(call.inputs, call.spec))
        try:
            spec = msgspec.convert({knob: call.spec.get(knob) for knob in _KNOBS}, ContainerSpec)
        except msgspec.ValidationError as error:
            raise ToolError("input", f"`spec`: {error}") from None
        runtime = _find_runtime(spec)
        name = f"noetl-{uuid4().hex}"
        env = variables(inputs)
        command = [runtime, *run_arguments(inputs, spec, env, call.folder, name)]

        def start(stdin: int) -> Program:
            return Program(
                command,
                folder=call.folder,
                env=passed_variables(env),
                stdin=stdin,
                orphan_killer=self._orphan_killer,
            )

        remover = _start_remover(runtime, name)
        try:
            program = await run_captured(call, start, self._grace)
            state = await _inspect(runtime, name) if program.code else {}
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, remover))
        if program.code and state.get("Status") in (None, "created", "configured", "initialized"):
            raise _start_error(inputs, program, call)
        if state.get("OOMKilled"):
            return _out_of_memory(program, spec, call)
        return exit_outcome(program, call.mask)


def _find_runtime(spec: ContainerSpec) -> str:
    names = _RUNTIMES if spec.runtime is None else (spec.runtime,)
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        message = f"the worker has no `{spec.runtime or 'docker` or `podman'}`"
        raise ToolError("not_found", f"{message}: install it, or put it on the `PATH`")
    return path


def _is_podman(runtime: str) -> bool:
    return os.path.basename(runtime) == "podman"


def _start_remover(runtime: str, name: str) -> "subprocess.Popen[bytes]":
    """The runtime keeps a container whose command line was killed: this ends it in any case."""
    return subprocess.Popen(  # noqa: S603 - the runtime that the task asks for
        ["/bin/sh", "-c", _REMOVE_AT_ONCE if _is_podman(runtime) else _REMOVE, runtime, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a signal of the terminal is for the worker
    )


def _remove(remover: "subprocess.Popen[bytes]") -> None:
    try:
        remover.communicate(timeout=_REMOVE_SECONDS)
    except subprocess.TimeoutExpired:
        return


async def _inspect(runtime: str, name: str) -> dict[str, Any]:
    """How a container ended, in the runtime's words; nothing if there is none."""
    try:
        answer = await asyncio.to_thread(
            subprocess.run,
            [runtime, "inspect", "--type=container", "--format={{json .State}}", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_INSPECT_SECONDS,
            check=False,
        )
        state = msgspec.json.decode(answer.stdout)
    except (subprocess.TimeoutExpired, OSError, msgspec.DecodeError):
        return {}
    return state if isinstance(state, dict) else {}


_START_ERRORS: tuple[tuple[ErrorKind, tuple[str, ...]], ...] = (
    (
        "connection",
        (
            "cannot connect to",
            "connection refused",
            "connection reset",
            "no such host",
            "i/o timeout",
            "tls handshake timeout",
        ),
    ),
    ("permission", ("permission denied", "access denied", "denied: ", "unauthorized")),
    (
        "not_found",
        (
            "no such image",
            "manifest unknown",
            "image not known",
            "does not exist",
            "no such file or directory",
            "executable file not found",
        ),
    ),
)
"""What both runtimes print when a container does not start: they have one exit code for all of it."""


def _start_error(inputs: ContainerInputs, program: CapturedProgram, call: Call) -> ToolError:
    printed = program.err.text.lower()
    kinds = (kind for kind, phrases in _START_ERRORS if any(phrase in printed for phrase in phrases))
    kind: ErrorKind = "process_exit" if program.code < 0 else next(kinds, "input")
    # Docker ends with an advice to read its own help.
    reasons = "\n".join(line for line in program.err.text.splitlines() if "--help" not in line)
    message = f"the container of `{inputs.image}` did not start{last_words(reasons, call.mask)}"
    return ToolError(kind, message, retryable=kind in ("connection", "process_exit"))


def _out_of_memory(program: CapturedProgram, spec: ContainerSpec, call: Call) -> Outcome:
    limit = f"more than {spec.memory}" if spec.memory is not None else "more memory than there is"
    failed = error_outcome(
        "limit",
        f"the container was out of memory: it needs {limit}",
        details={"exit_code": program.code, "out_of_memory": True},
    )
    return msgspec.structs.replace(failed, result=exit_outcome(program, call.mask).result)

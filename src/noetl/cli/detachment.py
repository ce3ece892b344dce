"""A command that goes on in the background."""

import json
import os
from pathlib import Path
from typing import Literal

from noetl.cli.command_failure import CommandFailure

_JSON_ERROR, _TEXT_ERROR, _HINT = '{\n  "error"', "noetl: ", "hint: "
"""How a command says why it cannot do what was asked."""


def detach_process(log: Path, who: str) -> int | bytes:
    """Goes on in a child, which gets the end of a pipe to say there what is printed when it is ready.

    The parent gets that. The child has nothing of the terminal: its messages go to the log. Raises
    CommandFailure if the child ends before.
    """
    from noetl.stores.private_files import open_private_file

    written = log.stat().st_size if log.exists() else 0
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with open(reading, "rb") as pipe:
            if announced := pipe.read():
                return announced
        exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with log.open("rb") as file:
            file.seek(written)
            messages = file.read().decode("utf-8", "replace")
        raise _failure_in(messages, log, who, exit_code=2 if exit_code == 2 else 3)
    os.close(reading)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    output = open_private_file(log, os.O_WRONLY | os.O_APPEND)
    # Whoever waits for the end of our output would else wait for the process.
    for number, target in ((0, nowhere), (1, output), (2, output)):
        os.dup2(target, number)
    return writing


def _failure_in(output: str, log: Path, who: str, *, exit_code: Literal[2, 3]) -> CommandFailure:
    """What a child said before it ended, as far as it did, in text or as JSON."""
    code, message, hint = "server", "", ""
    if (start := output.find(_JSON_ERROR)) >= 0:
        error = json.JSONDecoder().raw_decode(output, start)[0]["error"]
        code, message, hint = error["code"], error["message"], error.get("hint") or ""
    elif (start := output.find(_TEXT_ERROR)) >= 0:
        lines = output[start:].removeprefix(_TEXT_ERROR).splitlines()
        message, hint = lines[0], "".join(lines[1:2]).partition(_HINT)[2]
    if not message:
        return CommandFailure(code, f"{who} did not start", hint=f"{log} says why", exit_code=exit_code)
    hint = hint or f"its log is {log}"
    return CommandFailure(code, f"{who} did not start: {message}", hint=hint, exit_code=exit_code)

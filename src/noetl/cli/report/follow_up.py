"""Commands to type next: they find an execution again, and say how to go on with it."""

from collections.abc import Sequence
from shlex import quote

from noetl.cli.tool_files import loaded_tool_files
from noetl.settings import Configuration

_NEEDING_TOOLS = frozenset({"cancel", "pause", "resume", "retry", "redrive", "fork", "signal"})
"""Verbs that go on with an execution: its playbook must be one that can run. To look at it, it need not."""


class FollowUp:
    """Commands for people to type, with the flags of this one, so that they find the same store.

    `server` is one that was found in a home, where commands that know an embedded store do not look for it.
    """

    def __init__(self, configuration: Configuration, server: str = "") -> None:
        self._variables = ""
        if server and not configuration.settings.server:
            self._flags = [f"--server {quote(server)}"]
            if configuration.origins["home"].source == "flag":  # it has the token
                self._variables = f"NOETL_HOME={quote(configuration.settings.home)} "
            return
        self._flags = [
            f"--{name} {quote(getattr(configuration.settings, name))}"
            for name in ("home", "store", "server")
            if configuration.origins[name].source == "flag"
        ]

    def executions_command(self, verb: str, execution_id: str, *words: str) -> str:
        """`noetl executions VERB ID …`."""
        tools = _tool_flags() if verb in _NEEDING_TOOLS else []
        return self._command(f"noetl executions {verb} {execution_id}", *words, flags=tools)

    def resume_command(self, execution_id: str) -> str:
        """`noetl run --resume ID`."""
        return self._command(f"noetl run --resume {execution_id}", flags=_tool_flags())

    def _command(self, start: str, *words: str, flags: Sequence[str]) -> str:
        return self._variables + " ".join([start, *map(quote, words), *self._flags, *flags])


def command_lines(commands: Sequence[tuple[str, str]]) -> list[str]:
    """The commands below each other, after an empty line, with what they do beside them."""
    width = max((len(command) for command, _ in commands), default=0)
    return ["", *(f"  {command:<{width}}  {meaning}" for command, meaning in commands)] if commands else []


def _tool_flags() -> list[str]:
    return [f"--tools {quote(name)}" for name in loaded_tool_files()]

"""Commands that find an execution again."""

from shlex import quote

from noetl.settings import Configuration


class FollowUp:
    """Commands for people to type, with the flags of this one, so that they find the same store."""

    def __init__(self, configuration: Configuration) -> None:
        self._flags = [
            f"--{name} {quote(getattr(configuration.settings, name))}"
            for name in ("home", "store")
            if configuration.origins[name].source == "flag"
        ]

    def executions_command(self, verb: str, execution_id: str, *words: str) -> str:
        """`noetl executions VERB ID …`."""
        return self._command(f"noetl executions {verb} {execution_id}", *words)

    def resume_command(self, execution_id: str) -> str:
        """`noetl run --resume ID`."""
        return self._command(f"noetl run --resume {execution_id}")

    def _command(self, start: str, *words: str) -> str:
        return " ".join([start, *map(quote, words), *self._flags])

"""What a command says when it cannot do what was asked."""

import contextlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from noetl.cli import console
from noetl.model.errors import NoetlError

if TYPE_CHECKING:
    from noetl.dsl.document.problem import Problem


class CommandFailure(NoetlError):
    """A command ends here. Exit code 2: the request is wrong, 3: the environment is.

    `problems` are those of the document whose text is `text`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        exit_code: Literal[1, 2, 3] = 2,
        problems: "tuple[Problem, ...]" = (),
        text: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.exit_code = exit_code
        self.problems = problems
        self.text = text


def invalid_playbook(problems: "tuple[Problem, ...]", text: str) -> CommandFailure:
    """The failure of a command that needs a valid playbook and got this text."""
    count = sum(problem.severity == "error" for problem in problems)
    message = f"the playbook has {count} error{'' if count == 1 else 's'}"
    return CommandFailure("playbook-invalid", message, problems=problems, text=text)


def command_failure_of(error: Exception) -> CommandFailure:
    """What any error means to the caller; one that nobody foresaw is ours."""
    if isinstance(error, click.Abort):
        return CommandFailure("interrupted", "interrupted", exit_code=1)
    if isinstance(error, click.UsageError):
        return _UsageFailure(error)
    if isinstance(error, click.ClickException):
        return CommandFailure("usage", error.format_message())
    if isinstance(error, NoetlError):
        return _refusal_of(error)
    if isinstance(error, OSError):
        return CommandFailure("environment", _system_error_text(error), exit_code=3)
    if _is_debugging():
        import traceback

        traceback.print_exception(error)
    message = f"this is a bug in noetl: {type(error).__name__}: {error}"
    hint = "NOETL_DEBUG=1 in the environment shows where; please report it"
    return CommandFailure("internal", message, hint=hint, exit_code=3)


def _refusal_of(error: NoetlError) -> CommandFailure:
    # From what is cheap to import to what is not: saying that an execution is unknown shall not take
    # longer than showing one. The loader, which brings all kinds of tools, comes last.
    from noetl.settings import SettingsWrong

    if isinstance(error, SettingsWrong):
        return CommandFailure("settings", str(error), hint=error.hint)
    from noetl.ports.store import ExecutionUnknown, StoreError, StoreUrlWrong

    if isinstance(error, ExecutionUnknown):
        return CommandFailure("unknown-execution", str(error), hint=error.hint)
    if isinstance(error, StoreUrlWrong):
        return CommandFailure("store-url", str(error), hint=error.hint)
    if isinstance(error, StoreError):
        return CommandFailure("store", str(error), hint=error.hint, exit_code=3)
    from noetl.ports.results import ResultError

    if isinstance(error, ResultError):
        return CommandFailure("result", str(error), hint=error.hint, exit_code=3)
    from noetl.stores.results.result_store_urls import ResultStoreUrlWrong

    if isinstance(error, ResultStoreUrlWrong):
        return CommandFailure("result-store", str(error), hint=error.hint, exit_code=3)
    from noetl.dsl.document.kinds import KindTaken
    from noetl.loader import PluginBroken

    if isinstance(error, PluginBroken | KindTaken):
        return CommandFailure("plugin", str(error), hint="repair or remove that package", exit_code=3)
    return CommandFailure("request", str(error), hint=getattr(error, "hint", ""))


class _UsageFailure(CommandFailure):
    """Click's error about arguments, which knows how to show the usage of its command."""

    def __init__(self, error: click.UsageError) -> None:
        path = error.ctx.command_path if error.ctx else "noetl"
        empty = isinstance(error, click.exceptions.NoArgsIsHelpError)
        message = "a command is missing" if empty else error.format_message()
        super().__init__("usage", message, hint=f"see `{path} --help`")
        self.error = error


def print_failure(failure: CommandFailure, arguments: Sequence[str]) -> None:
    """Print the failure: one JSON document on stdout if JSON was asked for, else text on stderr."""
    if _wants_json(arguments):
        from noetl.cli.problem_text import problems_json

        error = {"code": failure.code, "message": str(failure), "hint": failure.hint}
        # Nothing can be said on a stdout that fails; the exit code still tells.
        with contextlib.suppress(OSError):
            console.write_json({"error": error, "problems": problems_json(failure.problems)})
    elif isinstance(failure, _UsageFailure):
        with contextlib.suppress(OSError):
            failure.error.show()
    else:
        if failure.problems:
            from noetl.cli.problem_text import problems_text

            console.say(problems_text(failure.problems, failure.text, paint=console.plain_paint))
        console.say(f"noetl: {console.visible(str(failure))}")
        if failure.hint:
            console.say(f"  hint: {console.visible(failure.hint)}")


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask for JSON, even if they cannot be parsed; else what is configured."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    wanted = None
    for number, argument in enumerate(before, start=1):
        # Flags may stand before it in one word: `-qo json`.
        option = re.fullmatch(r"(?:-[qvy]*o|--output(?==|$))=?(.*)", argument, re.DOTALL)
        if option is not None:
            wanted = option[1] or "".join(before[number : number + 1])
    if wanted is not None:
        return wanted == "json"
    from noetl.settings import read_settings

    with contextlib.suppress(NoetlError, OSError):
        return read_settings().settings.output == "json"
    return False


def _is_debugging() -> bool:
    from noetl.settings import read_settings

    with contextlib.suppress(NoetlError, OSError):
        return read_settings().settings.debug
    return False


def _system_error_text(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"

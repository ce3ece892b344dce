"""Python files with tools of one's own, which a command is told to load."""

import sys
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from noetl.cli.command_failure import CommandFailure

_loaded: dict[Path, str] = {}
"""The names that files were loaded by."""


def load_tool_file(name: str) -> None:
    """Runs the file: what it declares with `noetl.tool` is known to this process from then on.

    It can import what stands beside it. A second time does nothing. Raises CommandFailure.
    """
    path = Path(name).absolute()
    if path in _loaded:
        return
    # This brings all kinds of tools, and commands that only ask for the loaded files shall start fast.
    from noetl.tools.kind_registry import declared_kinds

    before = declared_kinds()
    _run_file(path, name)
    if declared_kinds() == before:
        hint = 'write `@noetl.tool("KIND")` above a function or a class'
        raise CommandFailure("tools", f"{name} declares no tool", hint=hint)
    _loaded[path] = name


def loaded_tool_files() -> tuple[str, ...]:
    """The files so far, as they were named."""
    return tuple(_loaded.values())


def _run_file(path: Path, name: str) -> None:
    module = ModuleType(f"noetl_tools_{len(_loaded)}_{path.stem}")
    module.__file__ = str(path)
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # not first: a file there may be called as one of ours or of Python's
    sys.modules[module.__name__] = module
    try:
        # Standard output is for what the command prints.
        with redirect_stdout(sys.stderr):
            SourceFileLoader(module.__name__, str(path)).exec_module(module)
    except FileNotFoundError as error:
        if error.filename != str(path):
            raise _broken(name, path, error) from error
        hint = "--tools takes a Python file"
        raise CommandFailure("tools", f"there is no file {name}", hint=hint) from None
    except SyntaxError as error:
        where = name if error.filename == str(path) else error.filename
        reason = f"{type(error).__name__}: {error.msg}"
        raise CommandFailure("tools", f"{where}:{error.lineno}: {reason}") from None
    except (Exception, SystemExit) as error:
        raise _broken(name, path, error) from error


def _broken(name: str, path: Path, error: BaseException) -> CommandFailure:
    line = _line_in(path, error.__traceback__)
    where = f"{name}:{line}" if line else name
    message = str(error)
    reason = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return CommandFailure("tools", f"{where}: the file cannot be loaded: {reason}")


def _line_in(path: Path, trace: TracebackType | None) -> int:
    """The last line of the file that the traceback comes by; 0 if it never does."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

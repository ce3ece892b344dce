"""Whether the Python code in a playbook compiles. Nothing of it is run."""

import re
import warnings

from noetl.dsl.document.kinds import Fault
from noetl.guest.code import compile_code


def syntax_error(code: str, key: str) -> Fault | None:
    """Why the code of the input `key` does not compile, with the line inside it; None if it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compile(code)
    except SyntaxError as error:
        message = f"the code does not compile: {error.msg}"
        return Fault(message, key=key, hint=_hint(error.msg, code), line=error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return Fault(f"the code does not compile: {str(error) or 'it is nested too deeply'}", key=key)
    return None


def _compile(code: str) -> None:
    """Compiles the code as it is, and only if that needs it with its returns: that takes longer."""
    try:
        compile(code, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.msg != "'return' outside function":
            raise
        compile_code(code, "<code>")


def _hint(message: str, code: str) -> str:
    if re.match("'(await|async )|asynchronous", message):
        return "put it into `async def main(...)`, which is awaited"
    if "{{" in code or "{%" in code:
        return "code is never rendered: pass values with `args`"
    return ""

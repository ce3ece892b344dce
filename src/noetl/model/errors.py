"""What can go wrong, by what a caller does about it.

NoetlError
├── PlaybookInvalid   (noetl.dsl) the document is wrong: show its problems
├── EventUnwritable   (noetl.events) a body holds what JSON cannot say: nothing was written
├── EventUnreadable   (noetl.events) a stored event is damaged, or a newer release wrote it
├── EventNameUnknown  (noetl.events) a filter names no event: show the hint
├── ToolError         (noetl.model.outcome) a tool's own code fails its task: becomes the task's error
├── ToolRefused       (noetl.tools) a class or function cannot be a tool: mend its declaration
├── StoreError        (noetl.ports) the store cannot be opened, read or written: show the hint
├── ResultError       a stored value cannot be read or written: show the hint
└── ExpressionError   an expression is wrong, refused, or failed on the values it met
"""

from typing import Literal


class NoetlError(Exception):
    """The root of every error that this package raises on purpose."""


class ExpressionError(NoetlError):
    """An expression cannot be parsed, is refused, or failed.

    `offset` counts characters from the start of the expression's source text; None where the
    fault has no single place.
    """

    def __init__(self, message: str, *, offset: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint
        self.kind: Literal["expression", "limit", "credential"] = "expression"
        """What a failure that this causes is called."""


class ResultError(NoetlError):
    """A stored value cannot be read or written. `hint` says what to do about it.

    ResultError          the world failed: reading or writing did not work
    ├── ResultMissing    (noetl.ports) nothing is stored under this key
    └── ResultDamaged    (noetl.ports) what is stored under this key is not what was written
    """

    kind: Literal["not_found", "limit", "tool"] = "not_found"
    """What a failure that this causes is called."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

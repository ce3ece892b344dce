"""What a tool says when it is done: one envelope (000 §5)."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from noetl.model.errors import NoetlError
from noetl.model.json import Json

ErrorKind: TypeAlias = Literal[
    "timeout",
    "cancelled",
    "connection",
    "http_status",
    "sql",
    "python",
    "process_exit",
    "expression",
    "input",
    "credential",
    "not_found",
    "permission",
    "limit",
    "retry_exhausted",
    "jump_limit",
    "policy",
    "admission",
    "child_failed",
    "iteration_failed",
    "worker_lost",
    "store",
    "tool",
]
"""The closed list of what can go wrong.

`store`: the result store refuses or is gone; `tool` is a bug in the tool itself.
"""

ERROR_KINDS: frozenset[str] = frozenset(get_args(ErrorKind))


class ErrorInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why something failed. `details` belong to the kind, for example `attempts` or `sqlstate`."""

    kind: ErrorKind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    details: dict[str, Any] = {}

    def as_value(self) -> dict[str, Json]:
        """As expressions see it: the details stand beside the rest."""
        value: dict[str, Json] = {
            **self.details,
            "kind": self.kind,
            "message": self.message,
            "retryable": self.retryable,
        }
        if self.retry_after is not None:
            value["retry_after"] = self.retry_after
        return value


class Outcome(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The final outcome of one attempt. `helpers` are the blocks of its kind, for example `http` or `pg`."""

    status: Literal["ok", "error"]
    result: Any = None
    error: ErrorInfo | None = None
    meta: dict[str, Any] = {}
    helpers: dict[str, dict[str, Any]] = {}

    def as_value(self) -> dict[str, Json]:
        """As expressions see it."""
        return {
            **self.helpers,
            "status": self.status,
            "result": self.result,
            "error": self.error.as_value() if self.error else None,
            "meta": self.meta,
        }


class ToolError(NoetlError):
    """What a tool's own code raises to fail its task with an error of this kind.

    `retryable` says that another attempt may end well, `retry_after` how many seconds to leave between.
    `details` stand beside them in `outcome.error`.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        details: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(message)
        if kind not in ERROR_KINDS:
            raise ValueError(f"`{kind}` is no kind of error: there are {', '.join(sorted(ERROR_KINDS))}")
        self.info = ErrorInfo(
            kind=kind,
            message=message,
            retryable=retryable,
            retry_after=retry_after,
            details=dict(details or {}),
        )


def succeeded(result: Json = None, **helpers: dict[str, Json]) -> Outcome:
    """An ok outcome."""
    return Outcome(status="ok", result=result, helpers=helpers)


def failed(error: ErrorInfo, **helpers: dict[str, Json]) -> Outcome:
    """An error outcome."""
    return Outcome(status="error", error=error, helpers=helpers)

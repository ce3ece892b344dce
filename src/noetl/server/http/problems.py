"""What went wrong, as RFC 9457 says it: every error of the API has a code of one closed list."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from noetl.dsl.document.problem import PlaybookInvalid, Problem
from noetl.engine.catalog.playbooks import PlaybookMissing
from noetl.engine.catalog.preflight import CannotRun
from noetl.engine.history.execution_detail import document_problems
from noetl.engine.history.fork import CannotFork
from noetl.engine.history.history_views import ViewRequestWrong
from noetl.engine.history.result_rows import NoSuchPart
from noetl.engine.service import AlreadyRunning
from noetl.engine.start_key import KeyConflict
from noetl.kernel.errors import Refused
from noetl.model.errors import ExpressionError, NoetlError
from noetl.model.normalisation import NotJson
from noetl.ports.credentials import CredentialError, CredentialUnknown
from noetl.ports.http_api import RETRY_SECONDS, ProblemCode, ProblemDocument
from noetl.ports.results import ResultError, ResultMissing
from noetl.ports.store import ExecutionUnknown, StoreError, StoreSlow

STATUSES: dict[ProblemCode, int] = {
    "invalid_playbook": 422,
    "invalid_request": 422,
    "method_not_allowed": 405,
    "not_found": 404,
    "refused": 409,
    "conflict": 409,
    "lost": 409,
    "too_large": 413,
    "unsupported_protocol": 426,
    "unauthenticated": 401,
    "forbidden": 403,
    "overloaded": 503,
    "store_unavailable": 503,
}
"""The usual status of each code; a body that is no JSON at all is 400, though `invalid_request`."""
_MEDIA_TYPE = "application/problem+json"
_LOCATION = re.compile(r" - at (?:`key` in )?`(\$[^`]*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")


class ApiProblem(NoetlError):
    """A request ends here, with this answer."""

    def __init__(
        self,
        code: ProblemCode,
        detail: str,
        *,
        status: int = 0,
        hint: str = "",
        pointer: str = "",
        execution_id: str = "",
        problems: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status or STATUSES[code]
        self.hint = hint
        self.pointer = pointer
        self.execution_id = execution_id
        self.problems = document_problems(problems)
        self.headers = dict(headers or {})
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.headers.setdefault("Retry-After", str(RETRY_SECONDS))
        if self.status == HTTPStatus.UNAUTHORIZED:
            self.headers["WWW-Authenticate"] = "Bearer"

    def document(self) -> ProblemDocument:
        return ProblemDocument(
            type=f"urn:noetl:problem:{self.code}",
            title=HTTPStatus(self.status).phrase,
            status=self.status,
            code=self.code,
            detail=str(self),
            hint=self.hint,
            pointer=self.pointer,
            execution_id=self.execution_id,
            problems=self.problems,
        )


def problem_response(problem: ApiProblem) -> Response:
    body = msgspec.json.encode(problem.document())
    return Response(body, problem.status, problem.headers, _MEDIA_TYPE)


def problem_of(error: Exception) -> ApiProblem | None:
    """What an error means to who asked; None for one that is ours."""
    hint = getattr(error, "hint", "")
    match error:
        case ApiProblem():
            return error
        case PlaybookInvalid():
            return ApiProblem("invalid_playbook", str(error), problems=error.problems)
        case CannotRun():
            return ApiProblem("refused", str(error), status=422, hint=hint, problems=error.problems)
        case ExecutionUnknown() | PlaybookMissing() | CredentialUnknown() | ResultMissing() | NoSuchPart():
            return ApiProblem("not_found", str(error), hint=hint)
        case KeyConflict():
            return ApiProblem("conflict", str(error), hint=hint, execution_id=error.holder)
        case Refused() | CannotFork() | AlreadyRunning():
            return ApiProblem("refused", str(error), hint=hint)
        case ViewRequestWrong():
            pointer = f"/{error.parameter}"
            return ApiProblem("invalid_request", str(error), hint=hint, pointer=pointer)
        case ExpressionError():
            return ApiProblem("invalid_request", str(error), hint=hint, pointer="/expr")
        case NotJson():
            return ApiProblem("invalid_request", str(error), pointer=json_pointer(error.path))
        case StoreSlow():
            return ApiProblem("overloaded", str(error), hint=hint)
        case StoreError() | ResultError() | CredentialError():
            return ApiProblem("store_unavailable", str(error), hint=hint)
        case _:
            return None


def wrong_type(error: msgspec.ValidationError, root: str = "") -> ApiProblem:
    """A value of a request is not what it must be; `root` is where the value stands that was looked at."""
    message = str(error)
    match = _LOCATION.search(message)
    pointer = root + json_pointer(match[1] if match else "$")
    detail = _LOCATION.sub("", message)
    if unknown := _UNKNOWN.match(detail):  # where it stands is said of what holds it
        pointer += "/" + _escaped(unknown[1])
    return ApiProblem("invalid_request", detail, pointer=pointer)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def json_pointer(path: str) -> str:
    """RFC 6901 for a path as in `$.rows[3].price`. Where that names no key, the pointer ends before it."""
    pointer = ""
    for match in _STEP.finditer(path):
        if match[3]:
            break
        pointer += "/" + _escaped(match[1] or match[2])
    return pointer

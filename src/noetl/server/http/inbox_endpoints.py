"""What waits for a person."""

from typing import Annotated

from msgspec import Meta, Struct

from noetl.engine.history.wait_reader import Answerer
from noetl.ports.http_api import PageSize
from noetl.ports.page_api import WaitItem, WaitList
from noetl.server.http.access import Caller, may_act_as
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem


class WaitsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Those of one execution, if one is named; `mine`: only what the caller may answer."""

    execution_id: Annotated[str, Meta(max_length=100)] = ""
    mine: bool = False
    cursor: Annotated[str, Meta(max_length=20)] = ""
    limit: PageSize = 100


async def _list_waits(call: ApiCall) -> Answer:
    query: WaitsQuery = call.query
    start = _start_of(query.cursor)
    waits = await read_waits(call, query.execution_id)
    if query.mine:
        waits = [wait for wait in waits if wait.answerable]
    end = start + query.limit
    return Answer(WaitList(waits=waits[start:end], next_cursor=str(end) if end < len(waits) else None))


async def read_waits(call: ApiCall, execution_id: str = "") -> list[WaitItem]:
    """All that wait, as the caller sees them."""
    return await call.resources.wait_reader.read(_answerer(call.caller), execution_id)


def _answerer(caller: Caller) -> Answerer:
    return Answerer(caller.name, may_act_as(caller.role, "operator"), may_act_as(caller.role, "admin"))


def _start_of(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise ApiProblem("invalid_request", f"`{cursor}` is not a cursor", pointer="/cursor")
    return int(cursor or 0)


INBOX_ENDPOINTS = (
    Endpoint(
        name="list_waits",
        method="GET",
        path="/api/waits",
        role="viewer",
        summary="What waits for a person: questions, what an answer must fit, who may answer, until when.",
        handler=_list_waits,
        answers=(WaitList,),
        query=WaitsQuery,
        codes=("invalid_request",),
    ),
)

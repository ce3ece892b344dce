"""Who asks: the caller, and sessions of browsers."""

from collections.abc import Callable, Sequence

from noetl.ports.page_api import CallerAnswer
from noetl.server.http.access import Caller, may_act_as
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.settings import installed_release, machine_zone

Table = Callable[[], Sequence[Endpoint]]
"""All endpoints of the server: what a role may do follows from them."""


def session_endpoints(table: Table) -> tuple[Endpoint, ...]:
    async def read_caller(call: ApiCall) -> Answer:
        return Answer(_caller_answer(call.caller, table()))

    return (
        Endpoint(
            name="read_caller",
            method="GET",
            path="/api/me",
            role="viewer",
            summary="Who asks, with which role, and what that allows.",
            handler=read_caller,
            answers=(CallerAnswer,),
        ),
    )


def _caller_answer(caller: Caller, table: Sequence[Endpoint]) -> CallerAnswer:
    return CallerAnswer(
        name=caller.name,
        role=caller.role,
        may=[row.name for row in table if row.role is None or may_act_as(caller.role, row.role)],
        session=False,
        release=installed_release(),
        zone=machine_zone(),
    )

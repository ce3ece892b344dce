"""For who writes playbooks: their picture, the kinds there are, the schema of documents."""

import asyncio
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response

from noetl.dsl.completion.suggestions import Completer
from noetl.dsl.document.kind_reference import reference_of
from noetl.dsl.document.kinds import Kind
from noetl.engine.catalog.catalog_playbooks import entry_source
from noetl.engine.history.execution_detail import document_problems
from noetl.loader import examine, installed_kinds, schema
from noetl.ports.page_api import (
    CompletionAnswer,
    CompletionRequest,
    DraftNet,
    NetAnswer,
    ToolField,
    ToolItem,
    ToolList,
)
from noetl.server.http.catalog_endpoints import (
    DOCUMENT_TYPES,
    DocumentQuery,
    body_text,
    named_entry,
)
from noetl.server.http.endpoint import DOCUMENT_BODY, Answer, ApiCall, Endpoint
from noetl.tools.host.worker_tools import ENGINE_KINDS


async def _read_net(call: ApiCall) -> Answer | Response:
    """The picture of a registered version."""
    entry = await named_entry(call)
    tag = f'"{entry.version}-{entry.hash}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if call.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    playbooks = call.resources.playbooks
    document = playbooks.read(entry_source(entry, playbooks.directory))
    return Answer(await call.resources.nets.net(document.playbook), headers=headers)


async def _draw_net(call: ApiCall) -> Answer:
    """The picture of a draft, with its problems."""
    read = partial(
        examine,
        body_text(call.body),
        call.query.file,
        dialect=call.query.dialect,
        allow_kinds=call.resources.playbooks.allow_kinds,
    )
    examined = await asyncio.to_thread(read)
    net = await call.resources.nets.net(examined.playbook) if examined.playbook is not None else None
    return Answer(DraftNet(net=net, problems=document_problems(examined.problems)))


async def _list_tools(call: ApiCall) -> Answer:
    workers = call.resources.sessions.workers
    kinds = sorted(installed_kinds(), key=lambda kind: kind.name)
    return Answer(
        ToolList(
            tools=[
                _tool_item(kind, sum(_can_run(kind.name, session.kinds) for session in workers))
                for kind in kinds
            ]
        )
    )


def _can_run(kind: str, kinds: frozenset[str]) -> bool:
    return kind in ENGINE_KINDS or kind in kinds


def _tool_item(kind: Kind, workers: int) -> ToolItem:
    reference = reference_of(kind)
    return ToolItem(
        kind=kind.name,
        summary=kind.summary,
        result=kind.result,
        example=kind.example,
        inputs=msgspec.convert(reference.inputs, list[ToolField], from_attributes=True),
        knobs=msgspec.convert(reference.knobs, list[ToolField], from_attributes=True),
        workers=workers,
    )


async def _complete_text(call: ApiCall) -> Answer:
    request: CompletionRequest = call.body
    kinds = installed_kinds().with_allowed(call.resources.playbooks.allow_kinds)
    suggest = Completer(kinds).complete
    completion = await asyncio.to_thread(suggest, request.text, request.line, request.column)
    return Answer(msgspec.convert(completion, CompletionAnswer, from_attributes=True))


async def _read_schema(_call: ApiCall) -> Answer:
    return Answer(schema())


EDITOR_ENDPOINTS = (
    Endpoint(
        name="draw_net",
        method="POST",
        path="/api/net",
        role="viewer",
        summary="The picture of a document, as `noetl graph` draws it, and all its problems.",
        handler=_draw_net,
        answers=(DraftNet,),
        query=DocumentQuery,
        body=bytes,
        body_types=DOCUMENT_TYPES,
        largest=DOCUMENT_BODY,
        codes=("invalid_request", "too_large"),
    ),
    Endpoint(
        name="complete_text",
        method="POST",
        path="/api/complete",
        role="viewer",
        summary="What may be written at a place of a document, which may be wrong at this moment.",
        handler=_complete_text,
        answers=(CompletionAnswer,),
        body=CompletionRequest,
        largest=DOCUMENT_BODY,
        codes=("invalid_request", "too_large"),
    ),
    Endpoint(
        name="list_tools",
        method="GET",
        path="/api/tools",
        role="viewer",
        summary="The kinds of tasks, with their inputs, and how many workers can run each.",
        handler=_list_tools,
        answers=(ToolList,),
    ),
    Endpoint(
        name="read_schema",
        method="GET",
        path="/api/schema",
        role="viewer",
        summary="The JSON Schema of playbooks, as `noetl schema` prints it.",
        handler=_read_schema,
        answers=(dict[str, Any],),
    ),
)
NET_ENDPOINT = Endpoint(
    name="read_net",
    method="GET",
    path="/api/catalog/{path:path}/net",
    role="viewer",
    summary="The picture of a registered playbook, `PATH@VERSION` or the newest, as `noetl graph` draws it.",
    handler=_read_net,
    answers=(NetAnswer,),
    also=(304,),
    codes=("not_found",),
)
"""Before the path of a playbook, which takes everything below it."""

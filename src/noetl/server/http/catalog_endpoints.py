"""Registered playbooks, and what is wrong with a document."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.catalog_playbooks import entry_source
from noetl.engine.history.execution_detail import document_problems
from noetl.loader import examine, upgrade
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.catalog import CatalogEntry
from noetl.ports.http_api import (
    DeletedPlaybook,
    PageSize,
    PlaybookList,
    PlaybookText,
    PlaybookVersion,
    RegisteredPlaybook,
    ValidationAnswer,
    VersionList,
)
from noetl.server.http.endpoint import DOCUMENT_BODY, JSON, Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem

_CATALOG = "/api/catalog/"
_NEWEST = "@latest"
"""The same as nothing behind a path, also of a playbook whose path ends as that of a view does."""
DOCUMENT_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/plain", JSON)
Dialect = Literal["canonical", "draft", "in_use"]


class DocumentQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """How to read a document; `file` is what problems call it."""

    dialect: Dialect | None = None
    file: Annotated[str, Meta(min_length=1, max_length=1_000)] = "<body>"


class CatalogQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`prefix` is the beginning of paths."""

    prefix: str = ""
    cursor: str = ""
    limit: PageSize = 100


async def _validate_document(call: ApiCall) -> Answer:
    """All problems of a document."""
    text = body_text(call.body)
    examined = examine(
        text,
        call.query.file,
        dialect=call.query.dialect,
        allow_kinds=call.resources.playbooks.allow_kinds,
    )
    problems = document_problems(examined.problems)
    return Answer(ValidationAnswer(ok=examined.playbook is not None, problems=problems))


async def _register_playbook(call: ApiCall) -> Answer:
    """The next version of the playbook, or the newest if its content is the same."""
    resources = call.resources
    text, dialect = body_text(call.body), call.query.dialect
    allow_kinds = resources.playbooks.allow_kinds
    examined = examine(text, call.query.file, dialect=dialect, allow_kinds=allow_kinds)
    if (playbook := examined.playbook) is None:
        raise PlaybookInvalid(examined.problems)
    path = playbook.metadata.path
    if "@" in path or not path.isprintable():
        detail = f"`{path}` cannot be registered: `@` separates paths and versions"
        raise ApiProblem("invalid_request", detail)
    entry = CatalogEntry(
        path=path,
        hash=playbook.hash,
        label=playbook.metadata.version or "",
        dialect=dialect or "",
        source=text,
        canonical=upgrade(text, call.query.file, dialect=dialect, allow_kinds=allow_kinds),
        created_at=now_micros(),
        created_by=call.caller.name,
    )
    before = await resources.store.catalog_entry(path)
    registered = await resources.store.put_catalog_entry(entry)
    document = resources.playbooks.read(entry_source(registered, resources.playbooks.directory))
    # By its hash, too: so it is found as `playbook_id`, and by executions that outlive its registration.
    await resources.store.put_playbook(registered.hash, document.encode())
    created = before is None or registered.version > before.version
    answer = RegisteredPlaybook(
        **_version_fields(registered), created=created, problems=document_problems(playbook.warnings)
    )
    return Answer(answer, 201 if created else 200)


async def _list_playbooks(call: ApiCall) -> Answer:
    query: CatalogQuery = call.query
    page = await call.resources.store.catalog_entries(
        prefix=query.prefix, after=query.cursor, limit=query.limit
    )
    return Answer(PlaybookList(playbooks=list(map(_version, page.entries)), next_cursor=page.next or None))


async def _list_versions(call: ApiCall) -> Answer:
    entries = await call.resources.store.catalog_versions(call.part("path"))
    if not entries:
        raise await _unknown(call, call.part("path"))
    return Answer(VersionList(versions=list(map(_version, entries))))


async def _read_playbook(call: ApiCall) -> Answer:
    entry = await named_entry(call)
    text = PlaybookText(**_version_fields(entry), source=entry.source, canonical=entry.canonical)
    return Answer(text)


async def _delete_playbook(call: ApiCall) -> Answer:
    """A version, or all of them."""
    store = call.resources.store
    path, version = split_version(call.part("path"))
    versions = [entry.version for entry in await store.catalog_versions(path)]
    chosen = [number for number in versions if version in (0, number)]
    if not chosen:
        raise await _unknown(call, call.part("path"))
    if running := await store.delete_catalog_entries(path, version):
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        detail = f"the execution {running[0]}{more} runs it"
        raise ApiProblem("refused", detail, hint="wait for its end, or cancel it", execution_id=running[0])
    return Answer(DeletedPlaybook(path=path, versions=chosen))


async def named_entry(call: ApiCall) -> CatalogEntry:
    """`PATH@VERSION` of the request, the newest for `PATH` and `PATH@latest`. Raises ApiProblem."""
    return await find_entry(call, *split_version(call.part("path").removesuffix(_NEWEST)))


async def find_entry(call: ApiCall, path: str, version: int) -> CatalogEntry:
    """A registered version, the newest for 0. Raises ApiProblem `not_found`."""
    entry = await call.resources.store.catalog_entry(path, version)
    if entry is None:
        raise await _unknown(call, f"{path}@{version}" if version else path)
    return entry


def split_version(reference: str) -> tuple[str, int]:
    """`path@3` is version 3 of the path; 0 stands for the newest. Raises ApiProblem."""
    path, at, number = reference.partition("@")
    if not at:
        return path, 0
    if not (number.isascii() and number.isdigit() and len(number) < 16 and int(number)):
        raise ApiProblem("not_found", f"`{number}` is no version", hint="versions are numbers from 1")
    return path, int(number)


async def _unknown(call: ApiCall, name: str) -> ApiProblem:
    hint = "`noetl catalog list` names all"
    address = call.request.scope["path"]
    path = address.removeprefix(_CATALOG)
    # Who asked may have meant a playbook whose path ends as that of a view does.
    if path not in (address, name) and await call.resources.store.catalog_entry(path) is not None:
        hint = f"the playbook `{path}` is read at `{address}{_NEWEST}`"
    return ApiProblem("not_found", f"no playbook `{name}` is registered", hint=hint)


def body_text(body: bytes) -> str:
    """A document that came as a body. Raises ApiProblem."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"the document is not UTF-8 text (byte {error.start})"
        raise ApiProblem("invalid_request", detail, status=400) from None


def _version_fields(entry: CatalogEntry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "version": entry.version,
        "hash": entry.hash,
        "label": entry.label,
        "dialect": entry.dialect,
        "created_at": iso_time(entry.created_at),
        "created_by": entry.created_by,
    }


def _version(entry: CatalogEntry) -> PlaybookVersion:
    return PlaybookVersion(**_version_fields(entry))


CATALOG_ENDPOINTS = (
    Endpoint(
        name="register_playbook",
        method="POST",
        path="/api/catalog",
        role="author",
        summary="Register a playbook: the next version, or the newest if nothing has changed.",
        handler=_register_playbook,
        answers=(RegisteredPlaybook,),
        status=201,
        also=(200,),
        query=DocumentQuery,
        body=bytes,
        body_types=DOCUMENT_TYPES,
        largest=DOCUMENT_BODY,
        codes=("invalid_playbook", "invalid_request", "too_large"),
    ),
    Endpoint(
        name="list_playbooks",
        method="GET",
        path="/api/catalog",
        role="viewer",
        summary="The newest version of each registered playbook, by path.",
        handler=_list_playbooks,
        answers=(PlaybookList,),
        query=CatalogQuery,
        codes=("invalid_request",),
    ),
    Endpoint(
        name="list_versions",
        method="GET",
        path="/api/catalog/{path:path}/versions",
        role="viewer",
        summary="All versions of a playbook, the newest first.",
        handler=_list_versions,
        answers=(VersionList,),
        codes=("not_found",),
    ),
    Endpoint(
        name="read_playbook",
        method="GET",
        path="/api/catalog/{path:path}",
        role="viewer",
        summary="A registered playbook: `PATH@VERSION`, or the newest. `PATH@latest` is the newest, too, "
        "also where the path ends in `/versions`, `/statistics` or `/net`.",
        handler=_read_playbook,
        answers=(PlaybookText,),
        codes=("not_found",),
    ),
    Endpoint(
        name="delete_playbook",
        method="DELETE",
        path="/api/catalog/{path:path}",
        role="author",
        summary="Delete a version or all of them. Refused while executions run it.",
        handler=_delete_playbook,
        answers=(DeletedPlaybook,),
        codes=("not_found", "refused"),
    ),
    Endpoint(
        name="validate",
        method="POST",
        path="/api/validate",
        role="viewer",
        summary="All problems of a document.",
        handler=_validate_document,
        answers=(ValidationAnswer,),
        query=DocumentQuery,
        body=bytes,
        body_types=DOCUMENT_TYPES,
        largest=DOCUMENT_BODY,
        codes=("invalid_request", "too_large"),
    ),
)

"""For administrators: credentials, tokens and the audit."""

from typing import Any

from msgspec import Struct

from noetl.credentials.credential_rules import (
    CredentialRefused,
    check_credential_fields,
    check_credential_kind,
    mask_credential_fields,
)
from noetl.model.normalisation import normalise
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.admin_api import (
    AuditItem,
    AuditPage,
    CreatedToken,
    CredentialBody,
    CredentialDetail,
    CredentialItem,
    CredentialList,
    TokenItem,
    TokenList,
    TokenRequest,
)
from noetl.ports.credentials import SealedCredential, StoredCredential
from noetl.ports.http_api import PageSize
from noetl.ports.page_api import CredentialUsageList
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.problems import ApiProblem
from noetl.stores.api_tokens import make_token, token_facts


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True):
    cursor: str = ""
    limit: PageSize = 100


async def _list_credentials(call: ApiCall) -> Answer:
    credentials = [CredentialItem(**_facts(sealed)) for sealed in await call.resources.credentials.list()]
    return Answer(CredentialList(credentials=credentials))


async def _read_usage(call: ApiCall) -> Answer:
    """The names that stored credentials have, and those that newest versions of playbooks look up."""
    resources = call.resources
    usage = await resources.credential_usage.usage(
        resources.store, resources.credentials, resources.playbooks.allow_kinds
    )
    return Answer(CredentialUsageList(usage=usage))


async def _read_credential(call: ApiCall) -> Answer:
    sealed, opened = await call.resources.credentials.show(call.part("name"))
    return Answer(CredentialDetail(**_facts(sealed), fields=mask_credential_fields(opened.fields)))


async def _set_credential(call: ApiCall) -> Answer:
    """Keeps or replaces one."""
    body: CredentialBody = call.body
    fields: Any = normalise(body.fields)
    try:
        check_credential_kind(body.kind)
        check_credential_fields(body.kind, fields)
    except CredentialRefused as error:
        raise ApiProblem("invalid_request", str(error), hint=error.hint) from None
    await call.resources.credentials.set(StoredCredential(body.name, body.kind, fields))
    sealed, _ = await call.resources.credentials.show(body.name)
    return Answer(CredentialItem(**_facts(sealed)), 201)


async def _delete_credential(call: ApiCall) -> Answer:
    sealed, _ = await call.resources.credentials.show(call.part("name"))
    await call.resources.credentials.delete(sealed.name)
    return Answer(CredentialItem(**_facts(sealed)))


def _facts(sealed: SealedCredential) -> dict[str, Any]:
    return {
        "name": sealed.name,
        "kind": sealed.kind,
        "created_at": iso_time(sealed.created_at),
        "updated_at": iso_time(sealed.updated_at),
    }


async def _list_tokens(call: ApiCall) -> Answer:
    tokens = [TokenItem(**token_facts(token)) for token in await call.resources.store.api_tokens()]
    return Answer(TokenList(tokens=tokens))


async def _create_token(call: ApiCall) -> Answer:
    created = await make_token(call.resources.store, call.body, call.caller.name)
    if created is None:
        detail = f"there is a valid token `{call.body.name}` already"
        raise ApiProblem("conflict", detail, hint="revoke it first, or choose another name")
    return Answer(created, 201)


async def _revoke_token(call: ApiCall) -> Answer:
    store, name = call.resources.store, call.part("name")
    if not await store.revoke_api_token(name, now_micros()):
        raise ApiProblem(
            "not_found", f"there is no valid token `{name}`", hint="`noetl token list` names all"
        )
    revoked = next(token for token in await store.api_tokens() if token.name == name)
    return Answer(TokenItem(**token_facts(revoked)))


async def _list_audit(call: ApiCall) -> Answer:
    query: AuditQuery = call.query
    if query.cursor and not (query.cursor.isascii() and query.cursor.isdigit() and len(query.cursor) < 19):
        raise ApiProblem("invalid_request", f"`{query.cursor}` is not a cursor", pointer="/cursor")
    entries = await call.resources.store.audit(before=int(query.cursor or 0), limit=query.limit)
    items = [
        AuditItem(
            at=iso_time(entry.at),
            by=entry.by,
            role=entry.role,
            action=entry.action,
            target=entry.target,
            address=entry.address,
            status=entry.status,
        )
        for entry in entries
    ]
    more = len(entries) == query.limit and entries[-1].id > 1
    return Answer(AuditPage(audit=items, next_cursor=str(entries[-1].id) if more else None))


def _admin(name: str, route: str, handler: Any, answer: Any, summary: str, **more: Any) -> Endpoint:
    method, _, path = route.partition(" ")
    fields: dict[str, Any] = {
        "name": name,
        "method": method,
        "path": path,
        "handler": handler,
        "answers": (answer,),
    }
    return Endpoint(role="admin", summary=summary, **fields, **more)


ADMIN_ENDPOINTS = (
    _admin(
        "list_credentials",
        "GET /api/credentials",
        _list_credentials,
        CredentialList,
        "The stored credentials, without their fields.",
    ),
    _admin(
        "set_credential",
        "POST /api/credentials",
        _set_credential,
        CredentialItem,
        "Store a credential, or replace it.",
        status=201,
        body=CredentialBody,
        codes=("invalid_request", "too_large"),
    ),
    _admin(
        "read_credential_usage",
        "GET /api/credential-usage",
        _read_usage,
        CredentialUsageList,
        "Which tasks of the newest versions of playbooks name which credentials.",
    ),
    _admin(
        "read_credential",
        "GET /api/credentials/{name}",
        _read_credential,
        CredentialDetail,
        "A stored credential, its secrets as `***`.",
        codes=("not_found",),
    ),
    _admin(
        "delete_credential",
        "DELETE /api/credentials/{name}",
        _delete_credential,
        CredentialItem,
        "Delete a stored credential.",
        codes=("not_found",),
    ),
    _admin(
        "list_tokens", "GET /api/tokens", _list_tokens, TokenList, "The tokens, and whether they are valid."
    ),
    _admin(
        "create_token",
        "POST /api/tokens",
        _create_token,
        CreatedToken,
        "Make a token; it is shown this one time.",
        status=201,
        body=TokenRequest,
        codes=("invalid_request", "conflict"),
    ),
    _admin(
        "revoke_token",
        "DELETE /api/tokens/{name}",
        _revoke_token,
        TokenItem,
        "Make a token invalid, at once.",
        codes=("not_found",),
    ),
    _admin(
        "list_audit",
        "GET /api/audit",
        _list_audit,
        AuditPage,
        "Who changed what, the newest first.",
        query=AuditQuery,
        codes=("invalid_request",),
    ),
)

"""`noetl token`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure

if TYPE_CHECKING:
    from noetl.client.http_client import AsyncClient
    from noetl.ports.admin_api import CreatedToken, TokenItem
    from noetl.ports.store import Store
    from noetl.settings import Configuration

T = TypeVar("T")
ROLES = ("viewer", "operator", "author", "admin", "worker")


@click.group()
def token() -> None:
    """Make and revoke the tokens that let people and programs use a server.

    With --server or NOETL_SERVER the server is asked; else it is done in the store of the server's home.
    """


@token.command("create")
@click.argument("name", type=options.TextArgument())
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it lets its bearer do.")
@click.option("--expires", metavar="TIME", help="How long it is valid: 12h, 30d.  [default: until revoked]")
@options.server_options
def create(name: str, role: str, expires: str | None, **flags: str | None) -> None:
    """Make a token. It is shown this one time.

    Each role has the rights of those before it: viewer reads, operator starts and steers executions, author
    registers playbooks, admin has credentials and tokens; worker is for worker processes alone.
    """
    from noetl.cli.arguments import parse_seconds

    configuration = options.read_configuration(**flags)
    seconds = None if expires is None else max(1, int(parse_seconds(expires, "--expires")))
    created: CreatedToken
    if options.asks_server(configuration):
        from noetl.cli.server_connection import ask_server

        async def ask(client: "AsyncClient") -> "CreatedToken":
            return await client.create_token(name, role, expires_in=seconds)

        created = ask_server(configuration, ask)
    else:
        created = _with_store(configuration, lambda store: _create(store, name, role, seconds))
    if configuration.settings.output == "json":
        console.write_json(_json(created))
        return
    console.write_text(f"{created.token}\n")
    console.say(f"{console.visible(name)}: {role}; nobody can show it again")


@token.command("list")
@options.server_options
def list_(**flags: str | None) -> None:
    """List the tokens, without what they are."""
    configuration = options.read_configuration(**flags)
    if options.asks_server(configuration):
        from noetl.cli.server_connection import ask_server

        async def ask(client: "AsyncClient") -> "list[TokenItem]":
            return (await client.tokens()).tokens

        tokens = ask_server(configuration, ask)
    else:
        tokens = _with_store(configuration, _list)
    if configuration.settings.output == "json":
        console.write_json({"tokens": [_json(entry) for entry in tokens]})
    elif tokens:
        rows = [
            (
                console.visible(entry.name),
                entry.role,
                "valid" if entry.valid else "revoked" if entry.revoked_at else "expired",
                entry.expires_at or "",
                console.visible(entry.created_by),
            )
            for entry in tokens
        ]
        console.write_text(console.table_text(("NAME", "ROLE", "STATE", "EXPIRES", "BY"), rows))
    else:
        console.say("there are no tokens")


@token.command("revoke")
@click.argument("name", type=options.TextArgument())
@options.server_options
def revoke(name: str, **flags: str | None) -> None:
    """Make a token invalid, at once."""
    configuration = options.read_configuration(**flags)
    if options.asks_server(configuration):
        from noetl.cli.server_connection import ask_server

        ask_server(configuration, lambda client: client.revoke_token(name))
    else:
        _with_store(configuration, lambda store: _revoke(store, name))
    if configuration.settings.output == "json":
        console.write_json({"name": name, "revoked": True})
    else:
        console.write_text(f"{console.visible(name)}: revoked\n")


def _with_store(configuration: "Configuration", work: "Callable[[Store], Awaitable[T]]") -> T:
    """In the store of the server's home, which is made if there is none."""
    from noetl.home import server_home_of, server_store_url
    from noetl.stores import open_store

    home = server_home_of(configuration)
    home.make()

    async def run() -> T:
        store = open_store(server_store_url(configuration, home))
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def _create(store: "Store", name: str, role: Any, seconds: int | None) -> "CreatedToken":
    from noetl.ports.admin_api import TokenRequest
    from noetl.stores.api_tokens import make_token

    by = options.current_user()
    created = await make_token(store, TokenRequest(name=name, role=role, expires_in=seconds), by)
    if created is None:
        hint = "revoke it first, or choose another name"
        raise CommandFailure("conflict", f"there is a valid token `{name}` already", hint=hint)
    await _audit(store, "create_token", name)
    return created


async def _list(store: "Store") -> "list[TokenItem]":
    from noetl.ports.admin_api import TokenItem
    from noetl.stores.api_tokens import token_facts

    return [TokenItem(**token_facts(token)) for token in await store.api_tokens()]


async def _revoke(store: "Store", name: str) -> None:
    from noetl.model.timestamp import now_micros

    if not await store.revoke_api_token(name, now_micros()):
        hint = "`noetl token list` names all"
        raise CommandFailure("not_found", f"there is no valid token `{name}`", hint=hint)
    await _audit(store, "revoke_token", name)


async def _audit(store: "Store", action: str, name: str) -> None:
    from noetl.model.timestamp import now_micros
    from noetl.ports.catalog import AuditEntry

    entry = AuditEntry(now_micros(), options.current_user(), "admin", action, f"tokens/{name}", "", 200)
    await store.put_audit([entry])


def _json(item: Any) -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(item)
    return document

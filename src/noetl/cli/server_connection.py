"""The server that a command asks: where it is, with which token, and what its refusals mean here."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from noetl.cli import console
from noetl.cli.command_failure import CommandFailure
from noetl.client.http_client import AsyncClient
from noetl.client.server_requests import ServerError, ServerUnreachable
from noetl.dsl.document.problem import Problem
from noetl.home import server_homes
from noetl.ports.http_api import ExecutionItem, ProblemDocument
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.server_record import read_server_record, read_token_file

T = TypeVar("T")

LATEST = "latest"
_ID_LENGTH = 36
_ENVIRONMENT_CODES = ("overloaded", "store_unavailable")
_SHOWN = 3


class ServerAddress(NamedTuple):
    url: str
    token: str


def find_server(
    configuration: Configuration, token_file: Callable[[Home], Path] = lambda home: home.admin_token
) -> ServerAddress:
    """The server that is set, else the one that runs in this home. Raises CommandFailure.

    `token_file` is where the server of a home keeps the token that is meant, if none is set.
    """
    settings = configuration.settings
    for home in server_homes(configuration):
        record = read_server_record(home)
        if record is None:
            continue
        # The token of its home is for the server of that home, and for no other.
        if settings.server.rstrip("/") in ("", record.url):
            return ServerAddress(record.url, settings.token or read_token_file(token_file(home)))
    if settings.server:
        if not settings.server.startswith(("http://", "https://")):
            hint = "for example http://127.0.0.1:8642"
            raise CommandFailure("argument", f"`{settings.server}` is not the URL of a server", hint=hint)
        return ServerAddress(settings.server, settings.token)
    hint = "`noetl server start` starts one; --server or NOETL_SERVER names another"
    raise CommandFailure("server-unreachable", "no server is running here", hint=hint, exit_code=3)


def ask_server(configuration: Configuration, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    """What `work` gets from the server. Raises CommandFailure."""
    address = find_server(configuration)

    async def ask() -> T:
        async with AsyncClient(address.url, address.token) as client:
            return await work(client)

    try:
        return asyncio.run(ask())
    except ServerError as error:
        raise failure_of_refusal(error) from None
    except ServerUnreachable as error:
        raise CommandFailure("server-unreachable", str(error), hint=error.hint, exit_code=3) from None


def answered_problems(document: ProblemDocument) -> tuple[Problem, ...]:
    """What a server found wrong with a playbook."""
    return tuple(
        Problem(
            problem.file,
            problem.line,
            problem.column,
            problem.code,
            problem.severity,
            problem.message,
            problem.hint,
        )
        for problem in document.problems
    )


def failure_of_refusal(error: ServerError) -> CommandFailure:
    """What a command says of it, and ends with."""
    document = error.problem
    where = f" ({document.pointer})" if document.pointer else ""
    is_recorded = document.execution_id and document.code != "conflict"
    recorded = f" (recorded as {document.execution_id})" if is_recorded else ""
    hint = document.hint or ("NOETL_TOKEN holds one" if document.code == "unauthenticated" else "")
    return CommandFailure(
        document.code,
        f"{error}{where}{recorded}",
        hint=hint,
        exit_code=3 if document.code in _ENVIRONMENT_CODES else 2,
        problems=answered_problems(document),
    )


async def find_remote_execution(client: AsyncClient, name: str) -> str:
    """The id that is meant: the id itself, the beginning of one, or `latest`. Raises CommandFailure."""
    if len(name) == _ID_LENGTH:
        return name
    items: list[ExecutionItem]
    if name == LATEST:
        items = (await client.list(roots=True, limit=1)).executions
    else:
        items = (await client.list(prefix=name, limit=_SHOWN + 1)).executions
    match [item.execution_id for item in items]:
        case [execution_id]:
            return execution_id
        case []:
            message = "there is no execution yet" if name == LATEST else f"there is no execution `{name}`"
            raise CommandFailure("unknown-execution", console.visible(message))
        case ids:
            hint = f"write more: {', '.join(ids[:_SHOWN])}"
            raise CommandFailure("unknown-execution", f"`{name}` begins several ids", hint=hint)

"""`noetl catalog`."""

from typing import TYPE_CHECKING, Any

import click

from noetl.cli import console, file_access, options
from noetl.cli.command_failure import CommandFailure

if TYPE_CHECKING:
    from noetl.client.http_client import AsyncClient
    from noetl.ports.http_api import PlaybookVersion

_PAGE = 1_000


@click.group()
def catalog() -> None:
    """Register playbooks with a server, and look at those that are."""


@catalog.command("register")
@click.argument("files", nargs=-1, required=True, type=options.FileName(), metavar="FILE…")
@options.dialect
@options.server_options
def register(files: tuple[str, ...], dialect: str | None, **flags: str | None) -> None:
    """Register playbooks: each as the next version of its path, unless nothing has changed.

    FILE is a playbook, or `-` for standard input.
    """
    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)
    sources = [file_access.read_input(file) for file in files]

    async def work(client: "AsyncClient") -> list[dict[str, Any]]:
        registered = []
        for name, text in sources:
            playbook = await client.register(text, dialect=dialect or "", file=name)
            registered.append({**_version_json(playbook), "created": playbook.created, "file": name})
            if configuration.settings.output == "text":
                verdict = "registered" if playbook.created else "unchanged"
                console.write_text(f"{console.visible(playbook.path)}@{playbook.version}: {verdict}\n")
        return registered

    playbooks = ask_server(configuration, work)
    if configuration.settings.output == "json":
        console.write_json({"playbooks": playbooks})


@catalog.command("list")
@click.option(
    "--path",
    type=options.TextArgument(empty=True),
    default="",
    metavar="PATH",
    help="Only playbooks whose path begins so.",
)
@options.server_options
def list_(path: str, **flags: str | None) -> None:
    """List the registered playbooks, the newest version of each."""
    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)

    async def work(client: "AsyncClient") -> "list[PlaybookVersion]":
        playbooks: list[PlaybookVersion] = []
        cursor = ""
        while True:
            page = await client.playbooks(prefix=path, cursor=cursor, limit=_PAGE)
            playbooks += page.playbooks
            if not (cursor := page.next_cursor or ""):
                return playbooks

    playbooks = ask_server(configuration, work)
    if configuration.settings.output == "json":
        console.write_json({"playbooks": [_version_json(playbook) for playbook in playbooks]})
    elif playbooks:
        console.write_text(_table(playbooks))
    else:
        console.say("no playbooks are registered")


@catalog.command("show")
@click.argument("name", type=options.TextArgument(), metavar="PATH[@VERSION]")
@click.option("--canonical", is_flag=True, help="Show what executions run, not what was registered.")
@options.server_options
def show(name: str, *, canonical: bool, **flags: str | None) -> None:
    """Show a registered playbook, its newest version unless another is named."""
    import msgspec

    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)
    path, version = split_playbook_name(name)
    playbook = ask_server(configuration, lambda client: client.playbook(path, version))
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(playbook))
    else:
        text = playbook.canonical if canonical else playbook.source
        console.write_text(text if text.endswith("\n") else f"{text}\n")


@catalog.command("versions")
@click.argument("path", type=options.TextArgument(), metavar="PATH")
@options.server_options
def versions(path: str, **flags: str | None) -> None:
    """List the versions of a registered playbook, the newest first."""
    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)
    listed = ask_server(configuration, lambda client: client.versions(path)).versions
    if configuration.settings.output == "json":
        console.write_json({"versions": [_version_json(version) for version in listed]})
    else:
        console.write_text(_table(listed))


@catalog.command("delete")
@click.argument("name", type=options.TextArgument(), metavar="PATH[@VERSION]")
@options.server_options
def delete(name: str, **flags: str | None) -> None:
    """Delete a version of a registered playbook, or all. Refused while executions run it."""
    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**flags)
    path, version = split_playbook_name(name)
    deleted = ask_server(configuration, lambda client: client.delete_playbook(path, version))
    if configuration.settings.output == "json":
        console.write_json({"path": deleted.path, "versions": deleted.versions})
    else:
        numbers = ", ".join(map(str, deleted.versions))
        console.write_text(f"{console.visible(deleted.path)}: deleted version {numbers}\n")


def split_playbook_name(name: str) -> tuple[str, int]:
    """`PATH@3` is version 3; 0 stands for the newest. Raises CommandFailure."""
    path, at, number = name.partition("@")
    if at and not (number.isascii() and number.isdigit() and len(number) < 16 and int(number)):
        raise CommandFailure("argument", f"`{number}` is no version", hint="a number from 1: PATH@3")
    return path, int(number or 0)


def _version_json(version: "PlaybookVersion") -> dict[str, Any]:
    names = ("path", "version", "hash", "label", "dialect", "created_at", "created_by")
    return {name: getattr(version, name) for name in names}


def _table(versions: "list[PlaybookVersion]") -> str:
    from noetl.cli.format import local_time
    from noetl.model.timestamp import parse_iso

    rows = [
        (
            console.visible(version.path),
            str(version.version),
            console.visible(version.label),
            local_time(parse_iso(version.created_at)),
            console.visible(version.created_by),
        )
        for version in versions
    ]
    return console.table_text(("PATH", "VERSION", "LABEL", "REGISTERED", "BY"), rows)

"""`noetl credential`."""

from typing import Any

import click

from noetl.cli import console, options
from noetl.cli.format import local_time, pluralize, yaml_lines
from noetl.cli.options import FileName
from noetl.model.timestamp import parse_iso


@click.group()
def credential() -> None:
    """Keep credentials that playbooks use by name, encrypted."""


@credential.command("set")
@click.argument("name")
@click.option(
    "--kind",
    default="static",
    show_default=True,
    metavar="KIND",
    help="bearer, basic, api_key, oauth2, static, or one that ends in _credential.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field as it is. It stays in the history of your shell. May be repeated.",
)
@click.option(
    "--field-from-env",
    "variables",
    multiple=True,
    metavar="FIELD=VARIABLE",
    help="A field from an environment variable. May be repeated.",
)
@click.option("--stdin", is_flag=True, help="Read fields from standard input, as a JSON mapping.")
@options.store_options
def set_(
    name: str,
    *,
    kind: str,
    fields: tuple[str, ...],
    variables: tuple[str, ...],
    stdin: bool,
    **store_flags: str | None,
) -> None:
    """Store a credential, or replace it.

    The first one makes the key that encrypts them all, unless NOETL_KEY_FILE or NOETL_KEY names one.
    """
    from noetl.cli.credential_store import credential_fields, short_secrets, store_credential

    configuration = options.read_configuration(**store_flags)
    secret_fields = credential_fields(name, kind, fields, variables, stdin=stdin)
    for field in short_secrets(secret_fields):
        reason = "is so short that it is masked only where it is a whole value"
        console.say(f"noetl: warning: `{console.visible(field)}` {reason}")
    key_file = store_credential(configuration, name, kind, secret_fields)
    if configuration.settings.output == "json":
        console.write_json({"name": name, "kind": kind, "key_made": key_file})
        return
    console.write_text(f"{console.visible(name)}: stored\n")
    if key_file:
        console.say(f"made the key {console.visible(key_file)}: without it nobody can read what is stored")


@credential.command("list")
@options.store_options
def list_(**store_flags: str | None) -> None:
    """List the stored credentials, without their fields."""
    from noetl.cli.credential_store import list_credentials

    configuration = options.read_configuration(**store_flags)
    credentials = list_credentials(configuration)
    if configuration.settings.output == "json":
        console.write_json({"credentials": credentials})
        return
    name_width = max((len(entry["name"]) for entry in credentials), default=0)
    kind_width = max((len(entry["kind"]) for entry in credentials), default=0)
    for entry in credentials:
        updated = local_time(parse_iso(entry["updated_at"]))
        line = f"{entry['name']:<{name_width}}  {entry['kind']:<{kind_width}}  {updated}"
        console.write_text(console.visible(line) + "\n")
    if not credentials:
        console.say("no credentials are stored")


@credential.command()
@click.argument("name")
@click.option("--reveal", is_flag=True, help="Show secrets as they are.")
@options.store_options
def show(name: str, *, reveal: bool, **store_flags: str | None) -> None:
    """Show a stored credential, its secrets as `***`."""
    from noetl.cli.credential_store import show_credential

    configuration = options.read_configuration(**store_flags)
    document: dict[str, Any] = show_credential(configuration, name, reveal=reveal)
    if configuration.settings.output == "json":
        console.write_json(document)
        return
    document |= {key: local_time(parse_iso(document[key])) for key in ("created_at", "updated_at")}
    console.write_text("".join(f"{line}\n" for line in yaml_lines(document)))


@credential.command()
@click.argument("name")
@options.store_options
def delete(name: str, **store_flags: str | None) -> None:
    """Delete a stored credential."""
    from noetl.cli.credential_store import delete_credential

    configuration = options.read_configuration(**store_flags)
    delete_credential(configuration, name)
    if configuration.settings.output == "json":
        console.write_json({"name": name, "deleted": True})
    else:
        console.write_text(f"{console.visible(name)}: deleted\n")


@credential.command("rotate-key")
@click.option(
    "--new-key-file",
    type=FileName(),
    metavar="FILE",
    help="Use the key in this file, which is made if there is none. It is yours to configure then.",
)
@options.store_options
def rotate_key(new_key_file: str | None, **store_flags: str | None) -> None:
    """Encrypt the stored credentials with a new key.

    It takes the place of the old one in its file. If it is interrupted, the old one or the new one is there,
    whichever is needed.
    """
    from noetl.cli.credential_store import rotate_credential_key

    configuration = options.read_configuration(**store_flags)
    count, file = rotate_credential_key(configuration, new_key_file)
    if configuration.settings.output == "json":
        console.write_json({"credentials": count, "key_file": file})
        return
    console.write_text(f"{pluralize(count, 'credential')}: the key is new, in {console.visible(file)}\n")
    if new_key_file is not None:
        console.say("from now on NOETL_KEY_FILE must name that file, or NOETL_KEY hold what is in it")

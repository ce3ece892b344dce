"""`noetl upgrade`."""

import json

import click

from noetl.cli import console, file_access, options
from noetl.cli.command_failure import invalid_playbook
from noetl.cli.file_access import write_file
from noetl.settings import read_settings


@click.command()
@options.file
@options.dialect
@options.allow_kind
@options.tools
@click.option("--in-place", is_flag=True, help="Rewrite FILE itself.")
@options.output
def upgrade(
    *, file: str, dialect: str | None, allow_kinds: tuple[str, ...], in_place: bool, output: str | None
) -> None:
    """Rewrite a playbook of another dialect in the canonical form.

    FILE is a playbook as the language is in use, one of `noetl.io/v1`, a draft (with `--dialect
    draft`), or `-` for standard input. The YAML goes to standard output unless `--in-place` is
    given. Comments are lost; a playbook that is canonical already stays as it is.
    """
    settings = read_settings({"output": output, "allow_kinds": allow_kinds}).settings
    if in_place and file == file_access.STDIN:
        raise click.UsageError("--in-place needs a file, not standard input")
    from noetl.dsl.document.problem import PlaybookInvalid
    from noetl.loader import upgrade as canonical_yaml

    name, text = file_access.read_input(file)
    try:
        upgraded = canonical_yaml(text, name, dialect=dialect, allow_kinds=settings.allow_kinds)
    except PlaybookInvalid as error:
        raise invalid_playbook(error.problems, text) from None
    changed = _document(text) != _document(upgraded)
    result = upgraded if changed else text
    if in_place and changed:
        write_file(file, result.encode())
    if settings.output == "json":
        console.write_json({"file": name, "yaml": result, "changed": changed})
    elif not in_place:
        console.write_bytes(result.encode())
    console.say(
        f"{console.visible(name)}: {'upgraded; comments are lost' if changed else 'already canonical'}"
    )


def _document(text: str) -> str:
    """The document without its spelling: comments, quotes and the order of keys do not count."""
    from noetl.dsl.document.composer import compose
    from noetl.dsl.document.source import node_value

    node = compose(text)
    return json.dumps(node_value(node) if node else None, sort_keys=True)

"""`noetl schema`."""

import click

from noetl.cli import console, options
from noetl.cli.file_access import write_file
from noetl.settings import read_settings


@click.command()
@options.tools
@options.out
@options.output
def schema(out: str | None, output: str | None) -> None:
    """Print the JSON Schema of playbooks, for editors.

    An editor with a YAML language server completes and checks playbooks with it:
    `# yaml-language-server: $schema=FILE` in the first line of a playbook.
    """
    settings = read_settings({"output": output}).settings
    from noetl.loader import schema as playbook_schema

    document = playbook_schema()
    if out is None:
        console.write_json(document)
        return
    write_file(out, console.json_bytes(document))
    if settings.output == "json":
        console.write_json({"file": out})
    else:
        console.say(f"wrote {console.visible(out)}")

"""`noetl schema`."""

import click

from noetl.cli import option, stream
from noetl.cli.target import write_file
from noetl.settings import read


@click.command()
@option.out
@option.output
def schema(out: str | None, output: str | None) -> None:
    """Print the JSON Schema of playbooks, for editors.

    An editor with a YAML language server completes and checks playbooks with it:
    `# yaml-language-server: $schema=FILE` in the first line of a playbook.
    """
    settings = read({"output": output}).settings
    from noetl.loading import schema as playbook_schema

    document = playbook_schema()
    if out is None:
        stream.write_json(document)
        return
    write_file(out, stream.json_bytes(document))
    if settings.output == "json":
        stream.write_json({"file": out})
    else:
        stream.say(f"wrote {stream.visible(out)}")

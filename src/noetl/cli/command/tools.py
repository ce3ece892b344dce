"""`noetl tools`."""

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.settings import read_settings


@click.group()
def tools() -> None:
    """List the tool kinds that tasks can use, and explain one."""


@tools.command("list")
@options.tools
@options.output
def list_(output: str | None) -> None:
    """List the tool kinds that tasks can use.

    Those of installed packages included. Imports no driver: what it says of them is what is installed.
    """
    settings = read_settings({"output": output}).settings
    from noetl.cli.tool_page import all_kind_facts

    kinds = all_kind_facts()
    if settings.output == "json":
        console.write_json({"tools": [facts.as_json() for facts in kinds]})
        return
    rows = [
        (facts.kind.name, facts.kind.effect, facts.origin, facts.obstacle or "yes", facts.kind.summary)
        for facts in kinds
    ]
    heads = ("KIND", "EFFECT", "FROM", "RUNS HERE", "DOES")
    console.write_text(console.table_text(heads, [tuple(map(console.visible, row)) for row in rows]))


@tools.command()
@click.argument("kind")
@options.tools
@options.output
def show(kind: str, output: str | None) -> None:
    """Show what a task of a kind takes and gives.

    Its inputs and knobs with types, defaults and meaning, its result, and an example.
    """
    settings = read_settings({"output": output}).settings
    from noetl.cli.tool_page import all_kind_facts, kind_json, kind_text
    from noetl.dsl.document.shape_check import did_you_mean

    kinds = {facts.kind.name: facts for facts in all_kind_facts()}
    if kind not in kinds:
        hint = did_you_mean(kind, kinds) or "`noetl tools list` lists all kinds"
        raise CommandFailure("unknown-kind", f"there is no tool kind `{kind}`", hint=hint)
    if settings.output == "json":
        console.write_json(kind_json(kinds[kind]))
    else:
        console.write_text(kind_text(kinds[kind]))

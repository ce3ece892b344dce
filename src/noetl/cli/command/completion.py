"""`noetl completion`."""

import click
from click.shell_completion import get_completion_class

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.settings import read_settings

INSTALL = {
    "bash": "noetl completion bash > ~/.local/share/bash-completion/completions/noetl",
    "zsh": "noetl completion zsh > ~/.zfunc/_noetl, with fpath+=~/.zfunc before compinit in ~/.zshrc",
    "fish": "noetl completion fish > ~/.config/fish/completions/noetl.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)))
@options.output
@click.pass_context
def completion(ctx: click.Context, shell: str, output: str | None) -> None:
    """Print the script that completes commands in a shell.

    Its last line says how to install it.
    """
    settings = read_settings({"output": output}).settings
    kind = get_completion_class(shell)
    if kind is None:
        raise CommandFailure("shell", f"no completion for {shell}")
    script = kind(ctx.find_root().command, {}, "noetl", "_NOETL_COMPLETE").source()
    if settings.output == "json":
        console.write_json({"shell": shell, "script": script, "install": INSTALL[shell]})
    else:
        console.write_text(f"{script}\n# To install: {INSTALL[shell]}\n")

"""One module or package for each command, called by its name, and groups that import none to list them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by section, in the order of `--help`. A command's module is imported when it is used.

    `package` holds a module for each command, which calls the command `attribute`, or by its name.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        package: str,
        attribute: str = "",
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._sections = sections
        self._package = package
        self._attribute = attribute

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's contract
        return [name for section in self._sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{self._package}.{cmd_name}")
        command: click.Command = getattr(module, self._attribute or cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], known, 1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's contract
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=12)

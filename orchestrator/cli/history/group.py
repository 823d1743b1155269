"""The group of `tfcompare history`, which takes a case or a command."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

SHOW = "show"


class CaseOrCommand(TyperGroup):
    """A group that also accepts a case in place of a command.

    The first word that is not an option is a command if it names one, and otherwise the case to show. Options may come
    before either.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        index = self._first_word(ctx, args)
        if not set(args[:index]) & set(ctx.help_option_names):
            named = index < len(args) and args[index] in self.commands
            args = [args[index], *args[:index], *args[index + 1 :]] if named else [SHOW, *args]
        return super().parse_args(ctx, args)

    def _first_word(self, ctx: Any, args: Sequence[str]) -> int:
        valued = {
            name
            for command in self.commands.values()
            for param in command.get_params(ctx)
            if not getattr(param, "is_flag", True)
            for name in param.opts
        }
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            index += 2 if args[index] in valued else 1
        return index

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # What stands after `history` without a command belongs to the one that shows.
        self.params = [param for param in self.commands[SHOW].get_params(ctx) if param.name != "help"]
        super().format_help(ctx, formatter)

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
        at = self._first_word(ctx, args)
        if not set(args[:at]) & set(ctx.help_option_names):
            named = at < len(args) and args[at] in self.commands
            args = [args[at], *args[:at], *args[at + 1 :]] if named else [SHOW, *args]
        return super().parse_args(ctx, args)

    def _first_word(self, ctx: Any, args: Sequence[str]) -> int:
        valued = {
            name
            for command in self.commands.values()
            for param in command.get_params(ctx)
            if not getattr(param, "is_flag", True)
            for name in param.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in valued else 1
        return at

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # What stands after `history` without a command belongs to the one that shows.
        self.params = [param for param in self.commands[SHOW].get_params(ctx) if param.name != "help"]
        super().format_help(ctx, formatter)

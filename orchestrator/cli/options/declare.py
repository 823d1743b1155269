"""Declares flags in groups, and offers a command the flags of the groups that it takes."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, cast, get_type_hints

import typer

from orchestrator.cli import parse
from orchestrator.errors import UsageError

# --help at 80 columns shows values of up to this many characters next to a flag without breaking one.
WIDEST_VALUES = 30


@dataclass(frozen=True)
class Choice:
    """A parser of a flag with a fixed set of values, of which it takes one or, if `several`, a list with commas."""

    flag: str
    noun: str
    first: Collection[str]
    # A registry may gain entries after the flag was declared.
    registry: Collection[str]
    several: bool
    # The keys are values that another command takes; each comes with what to write instead.
    elsewhere: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        return (*self.first, *self.registry)

    def __call__(self, text: str) -> str:
        if instead := self.elsewhere.get(text):
            raise UsageError(f"{self.flag} {text}: {instead}")
        for part in parse.parse_names(text) if self.several else [text]:
            parse.one_of(self.flag, self.noun, part, self.values)
        return text


def choice(
    flag: str,
    noun: str,
    values: Collection[str],
    help: str,
    *,
    first: Collection[str] = (),
    several: bool = False,
    elsewhere: Mapping[str, str] | None = None,
    **more: Any,
) -> Any:
    """Declare a flag with a fixed set of values, which --help lists and a refusal names."""
    parser = Choice(flag, noun, first, values, several, elsewhere or {})
    shown = "|".join(parser.values)
    if several or len(shown) > WIDEST_VALUES:
        shown = f"{noun.upper()},..." if several else noun.upper()
        # The help may already name each value and explain it.
        help = (
            help
            if all(value in help for value in parser.values)
            else f"{help} {'Any' if several else 'One'} of {', '.join(parser.values)}."
        )
    return typer.Option(flag, parser=parser, metavar=shown, help=help, **more)


def number(flag: str, least: int, most: int, help: str, **more: Any) -> Any:
    """Declare a flag that takes a whole number; a refusal names the flag, the value and the bounds."""
    return typer.Option(
        flag, parser=lambda text: parse.whole_number(flag, str(text), least, most), metavar="N", help=help, **more
    )


class Group:
    """A group of flags; --help shows the flags of each panel together."""

    panel: ClassVar[str]


def names_of(*groups: type[Group]) -> frozenset[str]:
    """Return the names of the groups' flags, as a command's parameters have them."""
    return frozenset(field.name for group in groups for field in dataclasses.fields(cast(Any, group)))


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Offer the flags of each group that annotates a parameter, and hand the command one object per group."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Group)}

    @wraps(command)
    def call(**values: Any) -> None:
        objects = {
            name: group(**{flag: values.pop(flag) for flag in names_of(group)}) for name, group in groups.items()
        }
        command(**objects, **values)

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))
            continue
        group = groups[parameter.name]
        flags = get_type_hints(group, include_extras=True)
        for field in dataclasses.fields(cast(Any, group)):
            # A group has one panel, and its flags belong to no other.
            flags[field.name].__metadata__[0].rich_help_panel = group.panel
            parameters.append(inspect.Parameter(field.name, kind, default=field.default, annotation=flags[field.name]))
    described = cast(Any, call)
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    described.groups = tuple(groups.values())
    return call


def find_given_flags(context: typer.Context, *, settings: bool = False) -> dict[str, tuple[str, Any]]:
    """Return the flags of the command line, but not of variables, with their values, by the names of parameters.

    With `settings`, those that the settings of the folder give are included.
    """
    sources = ("COMMANDLINE", "DEFAULT_MAP") if settings else ("COMMANDLINE",)
    return {
        str(param.name): (max(param.opts, key=len), context.params[str(param.name)])
        for param in context.command.params
        if param.name in context.params
        and getattr(context.get_parameter_source(str(param.name)), "name", "") in sources
    }


def refuse_others(context: typer.Context, allowed: Collection[str], what: str, instead: str) -> None:
    """Raise UsageError for the flags on the command line that cannot go with what the user continues."""
    if others := [flag for name, (flag, _) in find_given_flags(context).items() if name not in allowed]:
        raise UsageError(f"{what}: leave {', '.join(others)} out, or {instead}")

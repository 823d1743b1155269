"""Flags are declared in groups: a command that takes a group offers all of it, as every other command does."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_group

from orchestrator.cli import atlas, bisect, main, nightly, options, run, upgrade, why
from orchestrator.cli.options import GpuFlags, Group, InstallationFlags, MachineFlags, engine_options
from orchestrator.engines import AUTO, ENGINES
from tests.support.commands import called

MEASURING = ("run", "why", "upgrade", "models", "reproduce", "profile", "bisect", "atlas", "nightly run")
# Flags that have the name of one in a group and another meaning, each declared by its command.
OWN = {
    ("reproduce", "suite"), ("bisect", "case"), ("bisect", "output"), ("nightly run", "rounds"),
    ("doctor", "cpuset"), ("images build", "gpu"), ("images sbom", "gpu"), ("images lock", "gpu"),
    ("history show", "engine"), ("history show", "format"), ("history query", "format"),
    ("history site", "output"), ("nightly status", "quiet"), ("report", "output"), ("export", "output"),
    ("compare", "output"), ("list", "workload_folder"), ("images sbom", "output"), ("history show", "case"),
    ("history query", "output"), ("bisect", "metric"), ("history show", "metric"), ("comment", "dry_run"),
    ("merge", "output"), ("export", "format"), ("why", "case"), ("why", "metric"), ("upgrade", "format"),
    ("models", "fail_on"), ("models", "format"), ("environments pack", "gpu"), ("environments pack", "output"),
    ("atlas", "budget"), ("atlas", "dry_run"), ("atlas", "format"),
}  # fmt: skip


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        full = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


COMMANDS = dict(commands(get_group(main.app)))
GROUPS = [kind for kind in vars(options).values() if isinstance(kind, type) and issubclass(kind, Group)]
GROUPS.remove(Group)


def groups_of(name: str) -> tuple[type[Group], ...]:
    callback = COMMANDS[name].callback
    return getattr(callback, "groups", getattr(getattr(callback, "__wrapped__", None), "groups", ()))


def described(command: Any, name: str) -> tuple[Any, ...]:
    [param] = [param for param in command.params if param.name == name]
    # What a user sees and can write.
    return (
        param.opts, param.secondary_opts, param.default, param.envvar, param.help, param.multiple, param.is_flag,
        param.required, param.metavar, param.show_default, param.rich_help_panel,
    )  # fmt: skip


def flags(group: type[Group]) -> list[str]:
    return [field.name for field in dataclasses.fields(group)]


def test_every_group_is_taken_by_a_command():
    taken = {base for name in COMMANDS for group in groups_of(name) for base in group.__mro__}
    assert set(GROUPS) <= taken


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_commands_that_share_a_group_offer_the_same_flags(group: type[Group]):
    takers = [name for name in COMMANDS if any(issubclass(taken, group) for taken in groups_of(name))]
    for flag in flags(group):
        assert len({str(described(COMMANDS[name], flag)) for name in takers}) == 1
        assert described(COMMANDS[takers[0]], flag)[-1] == group.panel


def test_a_flag_of_a_group_is_offered_by_no_command_in_another_way():
    known = {flag for group in GROUPS for flag in flags(group)}
    by_hand = {
        (name, param.name)
        for name, command in COMMANDS.items()
        for param in command.params
        if param.name in known and param.name not in options.names_of(*groups_of(name))
    }
    assert by_hand == OWN


@pytest.mark.parametrize("name", MEASURING)
def test_every_command_that_measures_has_the_flags_of_machine_gpu_and_installation(name: str):
    taken = groups_of(name)
    for group in (options.MachineFlags, options.GpuFlags, options.InstallationFlags, options.QuietFlags):
        assert any(issubclass(one, group) for one in taken)


def test_the_engines_of_the_flag_are_those_that_there_are():
    assert described(COMMANDS["run"], "engine")[8] == "|".join((AUTO, *ENGINES))


RULES = (
    ("run", run.WITH_RESUME), ("why", why.WITH_RESUME), ("why", why.WITH_RUN), ("upgrade", upgrade.WITH_RESUME),
    ("atlas", atlas.WITH_RESUME), ("atlas", atlas.WITH_FIGURES),
    ("bisect", bisect.WITH_RESUME), ("nightly run", nightly.run.PASSED),
)  # fmt: skip


@pytest.mark.parametrize(("command", "names"), RULES)
def test_a_rule_names_flags_that_its_command_has(command: str, names: frozenset[str]):
    assert names <= {param.name for param in COMMANDS[command].params}


def test_what_a_night_passes_on_is_a_flag_of_run():
    for flag in nightly.run.PASSED:
        assert described(COMMANDS["run"], flag) == described(COMMANDS["nightly run"], flag)


def test_a_night_passes_on_what_was_given_and_no_address_of_an_index(monkeypatch):
    monkeypatch.setenv("TFCOMPARE_BASE", "mine")
    words = [
        "--versions",
        "1.14,2.0",
        "--engine",
        "venv",
        "--gpus",
        "0,1",
        "--allow-unsupported-gpu",
        "--index-url",
        "http://u:p@h/s",
    ]
    context = COMMANDS["nightly run"].make_context("run", words)
    assert sorted(nightly.run.flags_as_given(context)) == sorted(
        ["--engine", "venv", "--gpus", "0,1", "--allow-unsupported-gpu"]
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "--resume", ".", "--engine", "venv", "--seed", "1"], "leave --seed, --engine out, or start a new run"),
        (["bisect", "--resume", ".", "--memory", "4g", "--all"], "leave --memory, --all out, or start a new search"),
        (["run", "--versions", "1.14,2.0", "--engine", "dokcer"], "did you mean docker?"),
        (["nightly", "install", "--missed", "never"], "unknown way 'never'; choose from catch-up, skip"),
        (["nightly", "install", "--scheduler", "corn"], "did you mean cron?"),
        (["reproduce", "--list", "--format", "html"], "--list goes with --format table or json"),
        (["report", ".", "--table", "studie"], "did you mean study?"),
        (["export", ".", "--format", "csv", "--table", "arm"], "did you mean arms?"),
        (["history", "--format", "html"], "choose from table, json, csv"),
    ],
)
def test_a_wrong_value_is_refused_with_the_possible_ones(monkeypatch, capsys, argv: list[str], words: str):
    assert called(monkeypatch, *argv) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("words", ["run", "reproduce", "profile", "bisect", "nightly run", "doctor"])
def test_every_command_that_prepares_versions_can_forbid_downloads(words: str):
    command = get_group(main.app)
    for word in words.split():
        command = command.get_command(None, word)
    assert "--no-python-downloads" in [flag for param in command.params for flag in param.opts]


def test_downloads_are_allowed_unless_the_flag_is_given():
    assert engine_options(MachineFlags(), GpuFlags(), InstallationFlags()).python_downloads
    assert not engine_options(MachineFlags(), GpuFlags(), InstallationFlags(no_python_downloads=True)).python_downloads

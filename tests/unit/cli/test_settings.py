"""Settings of a folder are defaults of flags; what is typed goes before them, and what is wrong is named."""

import json
from pathlib import Path

import pytest

from orchestrator.catalog import active
from orchestrator.cli import main
from orchestrator.cli.settings import find_defaults
from orchestrator.nightly import night
from orchestrator.nightly.options import NightOptions
from tests.support.commands import called

OWN = "def build(tf, params): return len\n"
SETTINGS = """
targets = ["2.13", "2.13 TF_X=1 as told"]
workload-folder = "mine"
cases = ["one"]
budget = "7m"
margin = 3
engine = "venv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # Of whoever runs the tests.
    monkeypatch.setattr(active, "find_active", lambda: None)
    # Which settings count without trust is in test_trust.py.
    monkeypatch.setenv("TFCOMPARE_TRUST", "1")
    (tmp_path / "mine").mkdir()
    for name in ("one", "two"):
        (tmp_path / "mine" / f"{name}.py").write_text(OWN)
    return tmp_path


def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert called(monkeypatch, "run", "--dry-run", "--format", "json", *words) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def versions(found: dict[str, object]) -> list[str]:
    listed = found["targets"]
    assert isinstance(listed, list)
    return [each["target"] for each in listed]


def test_settings_are_what_flags_would_be(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text(SETTINGS)
    found = plan(monkeypatch, capsys)
    assert versions(found) == ["2.13.0", "told"]
    assert (found["cases"], found["budget_s"], found["engine"]) == (["one"], 420.0, "venv")


def test_what_is_typed_goes_before_a_setting(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text(SETTINGS)
    found = plan(monkeypatch, capsys, "--budget", "1m", "--case", "two")
    assert (found["cases"], found["budget_s"]) == (["two"], 60.0)
    assert versions(plan(monkeypatch, capsys, "2.14", "2.15")) == ["2.14.1", "2.15.1"]
    assert versions(plan(monkeypatch, capsys, "--versions", "2.14,2.15")) == ["2.14.1", "2.15.1"]
    assert versions(plan(monkeypatch, capsys, "-t", "2.14", "-t", "2.15")) == ["2.14.1", "2.15.1"]


def test_a_variable_goes_before_a_setting(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text('base = "of-the-file"\n')
    monkeypatch.setenv("TFCOMPARE_BASE", "of-the-shell")
    assert called(monkeypatch, "config", "--format", "json") == 0
    [base] = [each for each in json.loads(capsys.readouterr().out) if each["setting"] == "base"]
    assert (base["value"], base["source"]) == ("of-the-shell", "TFCOMPARE_BASE")


def test_settings_may_stand_in_the_file_of_a_project(folder: Path, monkeypatch, capsys):
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.tfcompare]\n" + SETTINGS)
    assert versions(plan(monkeypatch, capsys)) == ["2.13.0", "told"]


def test_the_file_of_another_tool_is_none_of_ours(folder: Path, monkeypatch, capsys):
    (folder / "pyproject.toml").write_text("this is = not [toml\n")
    assert versions(plan(monkeypatch, capsys, "2.14", "2.15", "--engine", "venv", "-c", "power")) == [
        "2.14.1",
        "2.15.1",
    ]


def test_another_file_can_be_named_or_none(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text("nonsense = 1\n")
    (folder / "other.toml").write_text(SETTINGS)
    monkeypatch.setenv("TFCOMPARE_CONFIG", "other.toml")
    assert versions(plan(monkeypatch, capsys)) == ["2.13.0", "told"]
    monkeypatch.setenv("TFCOMPARE_CONFIG", "")
    assert called(monkeypatch, "run", "--dry-run") == 2
    assert "there is nothing to compare" in capsys.readouterr().err
    monkeypatch.setenv("TFCOMPARE_CONFIG", "absent.toml")
    assert called(monkeypatch, "run", "--dry-run") == 2
    assert "absent.toml: the settings cannot be read: No such file" in capsys.readouterr().err


BAD = {
    "an unknown name": ("bugdet = '1m'", "tfcompare.toml: unknown setting 'bugdet' (did you mean budget?)"),
    "one of a list": ("target = '2.13'", "unknown setting 'target' (did you mean targets?)"),
    "what belongs to a call": ("dry-run = true", "unknown setting 'dry-run'"),
    "a value that the flag refuses": ("budget = 'soon'", "tfcompare.toml: --budget 'soon' is not a duration"),
    "a table for a text": ("[budget]\nx = 1", "budget: it is a text or a number"),
    "a text for a switch": ("gpu = 'yes'", "gpu: it is true or false"),
    "a switch for a text": ("budget = true", "budget: it is a text or a number"),
    "a text for a table": ("nightly = '2.13'", "nightly must be a table: [nightly]"),
    "an unknown name for nights": ("[nightly]\nlimt = '1h'", "tfcompare.toml, [nightly]: unknown setting 'limt'"),
    "no TOML": ("targets = [", "tfcompare.toml: not TOML"),
    "an engine that does not exist": ("engine = 'podman'", "unknown engine 'podman'"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_setting_that_is_none_ends_the_command_before_any_work(
    folder: Path, monkeypatch, capsys, text: str, words: str
):
    (folder / "tfcompare.toml").write_text(text + "\n")
    assert called(monkeypatch, "run", "--versions", "2.13,2.14", "--dry-run") == 2
    assert words in capsys.readouterr().err


def test_settings_in_two_files_are_one_too_many(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text(SETTINGS)
    (folder / "pyproject.toml").write_text("[tool.tfcompare]\nbudget = '1m'\n")
    assert called(monkeypatch, "run", "--dry-run") == 2
    assert "keep one of them" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[tool]\ntfcompare = 3", "tool = 'tool.tfcompare'"])
def test_tools_of_a_project_that_are_no_tables_hold_no_settings(folder: Path, monkeypatch, capsys, text: str):
    (folder / "pyproject.toml").write_text(f"# Not [tool.tfcompare].\n{text}\n")
    assert called(monkeypatch, "run", "--dry-run") == 2
    message = capsys.readouterr().err
    assert "tool.tfcompare must be a table" in message or "there is nothing to compare" in message


@pytest.mark.parametrize("words", [("report", "nowhere"), ("list", "suites"), ("run", "--resume", "nowhere")])
def test_commands_that_take_no_settings_do_not_read_them(folder: Path, monkeypatch, capsys, words: tuple[str, ...]):
    (folder / "tfcompare.toml").write_text("nonsense = 1\n")
    called(monkeypatch, *words)
    assert "nonsense" not in capsys.readouterr().err


def test_each_command_takes_the_settings_whose_flags_it_has(folder: Path):
    (folder / "tfcompare.toml").write_text(SETTINGS.replace('"2.13 TF_X=1 as told"', '"2.14"'))
    root = main.typer.main.get_command(main.app)
    assert find_defaults(root, ["profile"]).by_command["profile"] == {
        "versions": "2.13,2.14", "workload_folder": "mine", "case": ["one"], "engine": "venv",
    }  # fmt: skip
    assert find_defaults(root, ["bisect"]).by_command["bisect"] == {
        "workload_folder": "mine", "budget": "7m", "margin": "3", "engine": "venv",
    }  # fmt: skip
    assert find_defaults(root, ["reproduce"]).by_command["reproduce"] == {"engine": "venv"}
    assert find_defaults(root, ["models"]).by_command["models"] == {"target": ["2.13", "2.14"], "engine": "venv"}
    (folder / "tfcompare.toml").write_text("versions = '2.13,2.14'\nfail-on = 'slower>10%'\n")
    assert find_defaults(root, ["models"]).by_command["models"] == {"versions": "2.13,2.14"}
    assert find_defaults(root, ["reproduce"]).by_command["reproduce"] == {}


def test_a_night_takes_its_own_table_and_hands_all_of_it_on(folder: Path, monkeypatch, capsys):
    asked: list[NightOptions] = []

    def stop(options: NightOptions, say: object) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(night, "run_night", stop)
    (folder / "tfcompare.toml").write_text(f'{SETTINGS}\n[nightly]\nversions = ["2.13", "nightly"]\nmemory = "4g"\n')
    assert called(monkeypatch, "nightly", "run", "--limit", "2h") == 130, capsys.readouterr().err
    [options] = asked
    assert (options.names, options.selected, options.limit_s) == (("2.13", "nightly"), ("one",), 7200.0)
    # The budget is that of other runs; the run of the night reads no settings, it gets them as flags.
    assert dict(zip(options.flags[::2], options.flags[1::2], strict=True)) == {
        "--workload-folder": "mine", "--engine": "venv", "--memory": "4g",
    }  # fmt: skip
    assert options.variables == {"TFCOMPARE_CONFIG": ""}


def test_what_is_in_force_is_printed_with_where_it_comes_from(folder: Path, monkeypatch, capsys):
    (folder / "tfcompare.toml").write_text(f'{SETTINGS}\n[nightly]\nlimit = "4h"\n')
    assert called(monkeypatch, "config", "--format", "json") == 0
    found = {(each["command"], each["setting"]): each for each in json.loads(capsys.readouterr().out)}
    assert found["run", "targets"]["value"] == ["2.13", "2.13 TF_X=1 as told"]
    assert found["run", "margin"] == {
        "command": "run", "setting": "margin", "value": "3", "source": "tfcompare.toml", "needs": "",
    }  # fmt: skip
    assert found["run", "timeout"]["source"] == "default"
    assert found["nightly run", "limit"]["value"] == "4h"
    assert called(monkeypatch, "config") == 0
    assert "tfcompare.toml" in capsys.readouterr().out


def test_without_settings_all_is_as_usual(folder: Path, monkeypatch, capsys):
    assert called(monkeypatch, "config") == 0
    assert "all settings have their defaults" in capsys.readouterr().out

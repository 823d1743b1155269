"""Settings of folders above the working directory: which are found, what their paths mean, and whose trust decides."""

import json
import os
from pathlib import Path

import pytest

from orchestrator.catalog import trust
from orchestrator.cli import main, settings
from tests.support.commands import called

OWN = "def build(tf, params): return len\n"
TARGETS = 'targets = ["2.13", "2.14"]\n'
root_only = pytest.mark.skipif(os.getuid() != 0, reason="not root: it gives files away")


class Tree:
    """A project of the user below a home folder, and calls from a folder inside it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.project, self.inner = home, home / "project", home / "project" / "a" / "b"
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def call(self, *words: str) -> tuple[int, str]:
        code = called(self.monkeypatch, *words)
        streams = self.capsys.readouterr()
        return code, streams.out + streams.err

    def plan(self, *words: str) -> dict[str, object]:
        code, text = self.call("run", "--dry-run", "--quiet", "--format", "json", "--engine", "venv", *words)
        assert code == 0, text
        found: dict[str, object] = json.loads(text)
        return found

    def sees_settings(self) -> bool:
        code, text = self.call("config", "--format", "json")
        assert code == 0, text
        return any(each["source"] != "default" for each in json.loads(text))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tree:
    for name in (settings.VARIABLE, trust.VARIABLE, "TFCOMPARE_BASE", "TFCOMPARE_INDEX_URL", "TFCOMPARE_WHEELHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = Tree(tmp_path / "home", monkeypatch, capsys)
    found.inner.mkdir(parents=True)
    (found.project / "mine").mkdir()
    (found.project / "mine" / "one.py").write_text(OWN)
    monkeypatch.chdir(found.inner)
    return found


def test_the_nearest_folder_with_settings_decides_alone(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(f'{TARGETS}budget = "7m"\ncases = ["power"]\n')
    assert tree.plan()["budget_s"] == 420.0
    # A project's file without such a table is not in the way.
    (tree.inner.parent / "pyproject.toml").write_text("[tool.ruff]\nline-length = 1\n")
    assert tree.plan()["budget_s"] == 420.0
    (tree.inner.parent / "pyproject.toml").write_text(f'[tool.tfcompare]\n{TARGETS}suite = "smoke"\n')
    assert tree.plan()["budget_s"] != 420.0
    code, text = tree.call("config", "--format", "json")
    sources = {each["setting"]: each["source"] for each in json.loads(text)}
    assert (code, sources["suite"], sources["budget"]) == (0, "../pyproject.toml", "default")


def test_paths_are_relative_to_the_folder_of_the_file(tree: Tree):
    tree.monkeypatch.setenv("TFCOMPARE_TRUST", "1")
    (tree.project / "tfcompare.toml").write_text(
        'workload-folder = "mine"\nwheelhouse = "/w"\nca-bundle = "~/ca.pem"\nrequirements = "r.txt"\n'
        'targets = ["wheel=dist/x.whl TF_X=1 as mine", "2.13 wheel=k.whl freeze=f.txt", "2.13"]\n'
        'data = ["images=d/i"]\n'
        '[nightly]\nversions = "2.13"\nhistory = "h"\n'
    )
    group = main.typer.main.get_command(main.app)
    found = settings.read_settings(group)
    assert found is not None
    assert {name: each.value for name, each in found.values.items()} == {
        "workload-folder": "../../mine",
        "wheelhouse": "/w",
        "ca-bundle": "~/ca.pem",
        "requirements": "../../r.txt",
        "target": ["wheel=../../dist/x.whl TF_X=1 as mine", "2.13 wheel=../../k.whl freeze=../../f.txt", "2.13"],
        "data": ["images=../../d/i"],
    }
    assert {name: each.value for name, each in found.nightly.items()} == {"versions": "2.13", "history": "../../h"}
    (tree.project / "tfcompare.toml").write_text(f'{TARGETS}workload-folder = "mine"\n')
    assert tree.plan()["cases"] == ["one"]


def test_every_flag_that_takes_a_path_is_placed():
    group = main.typer.main.get_command(main.app)
    commands = (group.get_command(None, "run"), group.get_command(None, "nightly").commands["run"])
    flags = {name: param for each in commands for name, param in settings.flags_of(each).items()}
    paths = {name for name, param in flags.items() if "ath" in type(param.type_descriptor).__name__}
    shown = {name for name, param in flags.items() if param.metavar in ("FILE", "FOLDER")}
    assert shown | paths == settings.PATHS & flags.keys() == settings.PATHS
    assert flags.keys() >= settings.NAMED_PATHS


def test_trust_is_that_of_the_folder_where_the_settings_are(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(f'{TARGETS}engine = "venv"\n')
    code, text = tree.call("run", "--dry-run")
    assert code == 2
    assert text.startswith("tfcompare: ../../tfcompare.toml: engine counts only in a folder that you trust")
    # Trust in the inner folder alone is trust in nothing: it has no settings.
    code, text = tree.call("trust", ".", "--yes")
    assert (code, text) == (0, ".: nothing here needs your trust\n")
    assert tree.call("run", "--dry-run")[0] == 2
    code, text = tree.call("trust", "--yes")
    assert (code, text.splitlines()[:2]) == (0, ["in ../..:", "engine = venv"])
    assert list(trust.read_all()) == [str(tree.project)]
    assert tree.call("run", "--dry-run")[0] == 0
    (tree.project / "tfcompare.toml").write_text(f'{TARGETS}engine = "docker"\n')
    assert tree.call("run", "--dry-run")[0] == 2


def test_trust_in_a_folder_is_no_trust_in_what_a_stranger_put_below_it(tree: Tree):
    text = f'{TARGETS}engine = "venv"\n'
    (tree.project / "tfcompare.toml").write_text(text)
    assert tree.call("trust", "--yes")[0] == 0
    (tree.inner / "tfcompare.toml").write_text(text)
    code, said = tree.call("run", "--dry-run")
    assert code == 2
    assert said.startswith("tfcompare: tfcompare.toml: engine counts only")


def test_trust_can_be_withdrawn_from_below(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(f'{TARGETS}engine = "venv"\n')
    assert tree.call("trust", "--yes")[0] == 0
    assert tree.call("trust", "--remove") == (0, f"no longer trusted: {tree.project}\n")
    assert tree.call("run", "--dry-run")[0] == 2


@pytest.mark.parametrize(("place", "needs"), [("mine", "container"), ("../mine", "trust"), (".hidden", "trust")])
def test_a_workload_folder_is_judged_by_the_folder_of_the_settings(tree: Tree, place: str, needs: str):
    (tree.project / "tfcompare.toml").write_text(f'workload-folder = "{place}"\n')
    (tree.home / "mine").mkdir()
    (tree.project / ".hidden").mkdir()
    found = settings.read_settings(main.typer.main.get_command(main.app))
    assert found is not None
    assert found.values["workload-folder"].needs == needs


def test_the_home_folder_and_what_is_above_it_are_left_out(tree: Tree):
    (tree.home / "tfcompare.toml").write_text("nonsense = 1\n")
    (tree.home.parent / "tfcompare.toml").write_text("nonsense = 1\n")
    assert not tree.sees_settings()
    code, text = tree.call("config")
    assert (code, f"from this folder up to {tree.project}" in " ".join(text.split())) == (0, True)
    # In the home folder itself, its settings are those of the working directory.
    tree.monkeypatch.chdir(tree.home)
    assert tree.call("config")[0] == 2
    (tree.home / "tfcompare.toml").unlink()
    assert not tree.sees_settings()


def test_a_folder_that_everyone_can_write_to_ends_the_search(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(TARGETS)
    assert tree.sees_settings()
    tree.inner.parent.chmod(0o1777)
    assert not tree.sees_settings()
    tree.inner.parent.chmod(0o775)
    assert tree.sees_settings()


def test_another_file_system_ends_the_search(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(TARGETS)
    assert tree.sees_settings()
    ask = Path.stat

    def stat(path: Path, **how: bool) -> os.stat_result:
        status = list(ask(path, **how))
        status[2] += path == tree.project
        return os.stat_result(status)

    tree.monkeypatch.setattr(Path, "stat", stat)
    assert not tree.sees_settings()


@root_only
@pytest.mark.parametrize("foreign", ["project", "a", "b"])
def test_a_folder_of_another_user_ends_the_search(tree: Tree, foreign: str):
    (tree.project / "tfcompare.toml").write_text(TARGETS)
    assert tree.sees_settings()
    [place] = [path for path in (tree.inner, *tree.inner.parents) if path.name == foreign]
    os.chown(place, 12345, 12345)
    assert not tree.sees_settings()


@root_only
@pytest.mark.parametrize("name", ["tfcompare.toml", "pyproject.toml"])
def test_a_file_that_another_user_put_above_is_refused(tree: Tree, name: str):
    file = tree.project / name
    file.write_text(f"[tool.tfcompare]\n{TARGETS}" if name == "pyproject.toml" else TARGETS)
    os.chown(file, 12345, 12345)
    code, text = tree.call("run", "--dry-run")
    assert code == 2
    assert text == (
        f"tfcompare: ../../{name}: the settings cannot be read: it belongs to another user; with TFCOMPARE_CONFIG= in "
        "the environment, no settings are read\n"
    )
    tree.monkeypatch.setenv(settings.VARIABLE, "")
    assert not tree.sees_settings()
    # A file of another tool is none of ours, whoever has it.
    tree.monkeypatch.delenv(settings.VARIABLE)
    if name == "pyproject.toml":
        file.write_text("[tool.ruff]\n")
        assert not tree.sees_settings()


@pytest.mark.parametrize("target", ["../outside.toml", "/etc/passwd", "/dev/zero"])
def test_settings_above_are_no_link_out_of_their_folder(tree: Tree, target: str):
    (tree.home / "outside.toml").write_text(TARGETS)
    (tree.project / "tfcompare.toml").symlink_to(target)
    code, text = tree.call("run", "--dry-run")
    assert code == 2
    assert "../../tfcompare.toml: the settings cannot be read: it leads out of its folder" in text
    (tree.project / "tfcompare.toml").unlink()
    (tree.project / "tfcompare.toml").symlink_to("inner.toml")
    (tree.project / "inner.toml").write_text(TARGETS)
    assert tree.sees_settings()


def test_a_link_to_the_working_directory_leads_to_the_folders_above_the_real_one(tree: Tree):
    (tree.project / "tfcompare.toml").write_text(TARGETS)
    elsewhere = tree.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tfcompare.toml").write_text("nonsense = 1\n")
    (elsewhere / "link").symlink_to(tree.inner)
    tree.monkeypatch.chdir(elsewhere / "link")
    tree.monkeypatch.setenv("PWD", str(elsewhere / "link"))
    assert tree.sees_settings()


def test_a_working_directory_that_is_gone_has_no_settings(tree: Tree):
    gone = tree.project / "gone"
    gone.mkdir()
    (tree.project / "tfcompare.toml").write_text(TARGETS)
    tree.monkeypatch.chdir(gone)
    gone.rmdir()
    assert list(settings.find_folders()) == [Path()]

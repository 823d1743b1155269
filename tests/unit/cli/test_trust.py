"""Settings of a folder that choose code, places or recipients count after the user has trusted them, and not before."""

import json
from pathlib import Path

import pytest

from orchestrator.catalog import trust
from orchestrator.cli import main, settings
from orchestrator.nightly import night
from orchestrator.nightly.options import NightOptions
from tests.conftest import run_command
from tests.support.commands import called

OWN = "def build(tf, params): return len\n"
VENV = ("--engine", "venv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "user"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    for name in (settings.VARIABLE, trust.VARIABLE, "TFCOMPARE_BASE", "TFCOMPARE_INDEX_URL", "TFCOMPARE_WHEELHOUSE"):
        monkeypatch.delenv(name, raising=False)
    stranger = tmp_path / "stranger"
    (stranger / "mine").mkdir(parents=True)
    (stranger / "mine" / "one.py").write_text(OWN)
    monkeypatch.chdir(stranger)
    return stranger


def write(folder: Path, text: str) -> None:
    (folder / "tfcompare.toml").write_text(text)


class Plan:
    """Calls of `run --dry-run`: their exit code, and what they print on stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        return self.call("run", "--dry-run", *words)

    def call(self, *words: str) -> tuple[int, str]:
        code = called(self.monkeypatch, *words)
        streams = self.capsys.readouterr()
        return code, streams.out + streams.err

    def trust(self, *words: str) -> str:
        code, text = self.call("trust", "--yes", *words)
        assert code == 0, text
        return text


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    return Plan(monkeypatch, capsys)


TARGETS = 'targets = ["2.13", "2.14"]\n'
GATED = {
    "engine": 'engine = "venv"',
    "on": 'on = "ray://127.0.0.1:1"',
    "base": 'base = "evil"',
    "index-url": 'index-url = "https://192.0.2.1/simple"',
    "wheelhouse": 'wheelhouse = "wheels"',
    "ca-bundle": 'ca-bundle = "ca.pem"',
    "inherit-env": "inherit-env = true",
    "lock-clocks": "lock-clocks = 1000",
    "gpu": "gpu = true",
    "memory": 'memory = "4g"',
    "data": 'data = ["images=/data"]',
    "workload-folder": 'workload-folder = "../elsewhere"',
}
GATED_TARGETS = {
    "a wheel": "wheel=evil.whl as x",
    "an image": "image=evil as x",
    "another variable": "2.13 LD_PRELOAD=/x.so as x",
    "code in a harmless variable": "2.13 TF_PLUGGABLE_DEVICE_LIBRARY_PATH=./x.so as x",
    "a folder in a harmless variable": "2.13 XLA_FLAGS=--xla_dump_to=/home as x",
    "a folder with code in it": "2.13 TF_PLUGGABLE_DEVICE_LIBRARY_PATH=mine as x",
    "a folder with a compiler in it": "2.13 XLA_FLAGS=--xla_gpu_cuda_data_dir=mine as x",
    "a tool of OpenMP": "2.13 OMP_TOOL_LIBRARIES=/x.so as x",
    "packages": "2.20 keras==3.8.0 as x",
    "packages of a day": "2.20 as-of=2026-01-31",
    "packages of today": "2.20 today",
    "a file of packages": "2.20 freeze=packages.txt as x",
    "another backend": "keras==3.8.0 backend=jax as x",
    "a wheel of a package": "2.20 wheel=evil.whl as x",
    "a revision of the code": "2.13 @main as x",
    "no target": "2.13 numpy=1.2 as x",
}
HARMLESS_TARGETS = [
    "2.13",
    "2.13, 2.14",
    "2.13 TF_ENABLE_ONEDNN_OPTS=0 as x",
    "2.13 TF_XLA_FLAGS=--tf_xla_auto_jit=2",
    "2.13 OMP_NUM_THREADS=1 TF_X=1 as x",
    "2.13 py=3.8",
    "2.16 keras=2",
]
HARMLESS = (
    TARGETS + 'cases = ["power"]\nsuite = "quick"\nbudget = "7m"\nrounds = 4\nmargin = 3\nmetric = "first"\n'
    'seed = 3\ncontrol = true\nfail-on = "slower"\nformat = "json"\nthreads = "1"\ntimeout = "1m"\n'
    'isolation = "process"\njudge = "cpu"\nhash-data = true\n[nightly]\nversions = "2.13,2.14"\nlimit = "1h"\n'
    'backfill = "1m"\njudge = "cpu"\n'
)


@pytest.mark.parametrize(("key", "line"), GATED.items(), ids=GATED)
def test_a_setting_that_needs_trust_ends_the_command_with_its_name(folder: Path, plan: Plan, key: str, line: str):
    write(folder, f"{TARGETS}{line}\n")
    code, text = plan()
    assert code == 2
    assert text.startswith(f"tfcompare: tfcompare.toml: {key} counts only in a folder that you trust: `tfcompare ")
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("profile", "--versions", "2.13", "-c", "power"),
        ("bisect", "--good", "2.13", "--bad", "2.14", "-c", "power[style=eager]"),
        ("reproduce", "--suite", "smoke"),
        ("check", "mine/one.py"),
        ("models", "--versions", "2.13,2.14"),
    ],
)
def test_every_command_that_takes_settings_asks_for_trust(folder: Path, plan: Plan, words: tuple[str, ...]):
    write(folder, "engine = 'venv'\n")
    code, text = plan.call(*words)
    assert code == 2
    assert "engine counts only in a folder that you trust" in text


@pytest.mark.parametrize("target", GATED_TARGETS.values(), ids=GATED_TARGETS)
@pytest.mark.parametrize("key", ["versions", "targets"])
def test_targets_that_name_code_need_trust(folder: Path, plan: Plan, key: str, target: str):
    write(folder, f"{key} = {json.dumps([target] if key == 'targets' else target)}\n")
    code, text = plan("-c", "power")
    assert code == 2
    assert f"{key} counts only in a folder that you trust" in text


@pytest.mark.parametrize("target", HARMLESS_TARGETS)
def test_versions_with_harmless_changes_need_no_trust(target: str):
    assert settings.find_needs("target", [target]) == ""
    assert settings.find_needs("versions", target) == ""


def test_harmless_settings_count_in_every_folder(folder: Path, plan: Plan):
    write(folder, HARMLESS)
    code, text = plan(*VENV)
    assert code == 0, text
    found, _ = json.JSONDecoder().raw_decode(text)
    assert (len(found["cases"]), found["looks"], found["budget_s"]) == (2, [4], 420.0)
    assert not trust.file().exists()


def test_every_flag_that_is_not_listed_needs_trust():
    root = main.typer.main.get_command(main.app)
    run, nightly = root.get_command(None, "run"), root.get_command(None, "nightly").commands["run"]
    flags = {*settings.flags_of(run), *settings.flags_of(nightly)}
    assert flags >= settings.HARMLESS
    for name in ("notify", "notify-file", "history", "where", "requirements", "keep-nightlies", *GATED):
        assert name in flags
        assert name not in settings.HARMLESS


def test_what_is_typed_replaces_a_setting_and_its_need(folder: Path, plan: Plan):
    write(folder, f"{TARGETS}engine = 'docker'\nbase = 'evil'\n")
    assert "engine, base count only" in plan()[1]
    code, text = plan(*VENV, "--base", "mine")
    assert code == 0, text
    for line in ('targets = ["2.13", "wheel=evil.whl as x"]\n', 'versions = "wheel=evil.whl as x"\n'):
        write(folder, line)
        for words in (("2.13", "2.14"), ("--versions", "2.13,2.14"), ("-t", "2.13", "-t", "2.14")):
            code, text = plan(*words, *VENV)
            assert code == 0, text


def test_a_variable_of_the_user_replaces_a_setting_and_its_need(folder: Path, plan: Plan, monkeypatch):
    write(folder, f"{TARGETS}base = 'evil'\n")
    monkeypatch.setenv("TFCOMPARE_BASE", "mine")
    assert plan(*VENV)[0] == 0


@pytest.mark.parametrize("name", ["tfcompare.toml", "pyproject.toml"])
def test_trust_lasts_until_a_setting_changes(folder: Path, plan: Plan, name: str):
    head = "" if name == "tfcompare.toml" else "[project]\nname = 'x'\n[tool.tfcompare]\n"
    text = f"{head}{TARGETS}engine = 'venv'\n"
    (folder / name).write_text(text)
    assert plan()[0] == 2
    shown = plan.trust()
    assert "engine = venv" in shown
    assert "targets" not in shown
    assert plan()[0] == 0
    assert trust.file().stat().st_mode & 0o777 == 0o600
    # What another tool reads there, and comments, change nothing.
    (folder / name).write_text(f"# A comment.\n{text}")
    assert plan()[0] == 0
    (folder / name).write_text(f"{text}budget = '1m'\n")
    code, said = plan()
    assert code == 2
    assert "engine counts only in a folder that you trust" in said
    plan.trust()
    assert plan()[0] == 0
    assert plan.call("trust", "--remove")[0] == 0
    assert plan()[0] == 2


def test_trust_is_in_one_folder(folder: Path, plan: Plan, monkeypatch):
    text = f"{TARGETS}engine = 'venv'\n"
    write(folder, text)
    monkeypatch.chdir(folder.parent)
    plan.trust("stranger")
    code, listed = plan.call("trust", "--list")
    assert (code, listed.split()) == (0, [str(folder)])
    (folder.parent / "other").mkdir()
    write(folder.parent / "other", text)
    monkeypatch.chdir(folder.parent / "other")
    assert plan()[0] == 2
    monkeypatch.chdir(folder)
    assert plan()[0] == 0


def test_the_variable_trusts_every_folder(folder: Path, plan: Plan, monkeypatch):
    write(folder, f"{TARGETS}engine = 'venv'\n")
    monkeypatch.setenv("TFCOMPARE_TRUST", "1")
    assert plan()[0] == 0
    monkeypatch.setenv("TFCOMPARE_TRUST", "0")
    assert plan()[0] == 2


def test_a_file_that_the_user_names_is_trusted(folder: Path, plan: Plan, monkeypatch):
    (folder / "mine.toml").write_text(f"{TARGETS}engine = 'venv'\n")
    monkeypatch.setenv("TFCOMPARE_CONFIG", "mine.toml")
    assert plan()[0] == 0


def test_without_a_terminal_nothing_is_trusted_unless_yes_is_typed(folder: Path, plan: Plan, monkeypatch):
    write(folder, f"{TARGETS}engine = 'venv'\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, text = plan.call("trust")
    assert code == 2
    assert "nothing was trusted" in text
    assert not trust.file().exists()


def test_values_are_shown_without_what_controls_a_terminal(folder: Path, plan: Plan):
    write(folder, f'{TARGETS}base = "a\\u001b]0;P\\u0007\\nb"\n')
    shown = plan.trust()
    assert r"base = a\x1b]0;P\x07 b" in shown
    assert "\x1b" not in shown


def test_the_command_shows_what_workloads_read_elsewhere_and_allows_it(folder: Path, plan: Plan):
    (folder.parent / "images").mkdir()
    (folder / "mine" / "two.py").write_text(f"DATA = {{'images': '../../images'}}\n{OWN}")
    (folder / "mine" / "link").symlink_to(folder.parent / "images")
    write(folder, f"{TARGETS}workload-folder = 'mine'\n")
    assert "tfcompare trust mine" in plan("--workload-folder", "mine", *VENV)[1]
    shown = plan.trust()
    assert "workload-folder = mine" in shown
    assert f"DATA['images'] of two in {folder}/mine: {folder.parent}/images" in shown
    assert f"the link link in {folder}/mine: {folder.parent}/images" in shown
    code, text = plan(*VENV)
    assert code == 0, text
    (folder / "mine" / "link").unlink()
    (folder / "mine" / "link").symlink_to(folder.parent)
    assert plan(*VENV)[0] == 2


@pytest.mark.slow
def test_workloads_in_the_folder_count_without_trust_under_docker_alone(folder: Path, plan: Plan, tfcompare: str):
    write(folder, f"{TARGETS}workload-folder = 'mine'\n")
    code, text = plan(*VENV)
    assert code == 2
    assert "workload-folder counts only in a folder that you trust" in text
    # Without a choice it is Docker, which does not answer here, and nothing else.
    done = run_command(tfcompare, "run", "--dry-run")
    assert done.returncode == 4
    assert done.stderr.startswith("note: --engine docker, since you have not trusted the workloads of this folder")
    assert run_command(tfcompare, "run", "--dry-run", "--engine", "docker").returncode == 4
    plan.trust()
    done = run_command(tfcompare, "run", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert plan(*VENV)[0] == 0


@pytest.mark.parametrize("place", ["../elsewhere", "mine/../../elsewhere", "out", ".hidden", "/"])
def test_a_workload_folder_elsewhere_needs_trust_on_every_engine(folder: Path, plan: Plan, place: str):
    (folder.parent / "elsewhere").mkdir()
    (folder / "out").symlink_to(folder.parent / "elsewhere")
    write(folder, f"{TARGETS}workload-folder = '{place}'\n")
    code, text = plan("--engine", "docker")
    assert code == 2
    assert "workload-folder counts only" in text


def test_the_whole_folder_may_be_that_of_workloads(folder: Path):
    assert settings.find_needs("workload-folder", ".") == settings.find_needs("workload-folder", "mine") == "container"


def test_a_program_behind_the_sign_needs_no_trust_in_the_workloads_of_the_folder(folder: Path, plan: Plan):
    write(folder, f"{TARGETS}workload-folder = 'mine'\n")
    (folder / "train.py").write_text("print(1)\n")
    code, text = plan(*VENV, "--", "python", "train.py")
    assert code == 0, text


def test_settings_are_no_link_out_of_the_folder(folder: Path, plan: Plan):
    (folder.parent / "other.toml").write_text(TARGETS)
    (folder / "tfcompare.toml").symlink_to("../other.toml")
    code, text = plan(*VENV)
    assert code == 2
    assert "tfcompare.toml: the settings cannot be read: it leads out of its folder" in text
    (folder / "tfcompare.toml").unlink()
    (folder / "inner.toml").write_text(TARGETS)
    (folder / "tfcompare.toml").symlink_to("inner.toml")
    assert plan(*VENV)[0] == 0
    (folder / "inner.toml").write_text("#" * 2**20 + f"\n{TARGETS}")
    assert "it has more than 1 MiB" in plan(*VENV)[1]


def test_settings_that_need_trust_are_marked(folder: Path, plan: Plan):
    write(folder, f"{TARGETS}workload-folder = 'mine'\nengine = 'venv'\n")
    code, text = plan.call("config", "--format", "json")
    assert code == 0
    found = {each["setting"]: each["needs"] for each in json.loads(text)}
    needs = [found[name] for name in ("targets", "workload-folder", "engine", "base")]
    assert needs == ["", "container", "trust", ""]
    shown = " ".join(plan.call("config")[1].split())
    assert "needs trust" in shown
    plan.trust()
    assert {each["needs"] for each in json.loads(plan.call("config", "--format", "json")[1])} == {""}


NIGHT = '[nightly]\nversions = "2.13,2.14"\n'


@pytest.mark.parametrize("line", ["notify = 'json://127.0.0.1:1'", "notify-file = 'urls'", "history = 'h'"])
@pytest.mark.parametrize("command", ["run", "install", "serve"])
def test_recipients_and_places_of_a_night_need_trust(folder: Path, plan: Plan, command: str, line: str):
    write(folder, f"{NIGHT}{line}\n")
    code, text = plan.call("nightly", command, *VENV)
    assert code == 2
    assert f"{line.split()[0]} counts only in a folder that you trust" in text


def test_a_night_of_untrusted_workloads_takes_docker_for_all_its_runs(folder: Path, plan: Plan, monkeypatch):
    asked: list[NightOptions] = []

    def stop(options: NightOptions, say: object) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(night, "run_night", stop)
    write(folder, f"workload-folder = 'mine'\n{NIGHT}")
    assert plan.call("nightly", "run")[0] == 130
    assert dict(zip(asked[0].flags[::2], asked[0].flags[1::2], strict=True)) == {
        "--workload-folder": "mine", "--engine": "docker",
    }  # fmt: skip


@pytest.mark.parametrize("trusts", ["0", "1"])
def test_no_value_of_the_environment_gets_into_addresses_of_a_folder(folder: Path, plan: Plan, monkeypatch, trusts):
    monkeypatch.setenv("TFCOMPARE_TRUST", trusts)
    monkeypatch.setenv("SECRET", "planted")
    write(folder, f"{NIGHT}notify = ['json://127.0.0.1:1/${{SECRET}}']\n")
    code, text = plan.call("nightly", "run", *VENV)
    assert code == 2
    assert "notify: ${...} is filled in only where you write it yourself" in text
    assert "planted" not in text
    (folder / "urls").write_text("json://127.0.0.1:1/${SECRET}\n")
    write(folder, f"{NIGHT}notify-file = 'urls'\n")
    code, text = plan.call("nightly", "run", *VENV)
    assert code == 2
    assert ("urls, line 1: ${...} is filled in only in a file that you name" in text) == (trusts == "1")
    assert "planted" not in text

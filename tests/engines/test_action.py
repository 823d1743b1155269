"""The workflows of docs/pull-requests.md as a runner carries them out, and attacks on them by what they measure.

Runs of a stub of TensorFlow are real, and the API answers here. tests/support/workflows.py says what is a stand-in.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree

import pytest
import yaml
from packaging.utils import canonicalize_name

from orchestrator.saved_models.report import write_models
from tests.conftest import ROOT
from tests.support.forges import TOKEN, FakeForge, fake_forge
from tests.support.pull_requests import (
    FOR_FORKS,
    ON_REQUEST,
    SETTINGS,
    WORKFLOW,
    WORKLOADS,
    assert_harmless,
    plant,
    with_inputs,
    write_code,
)
from tests.support.saved_tables import table
from tests.support.workflows import Forge, Job, Machine, install

ACTION, COMMENT = (yaml.safe_load((ROOT / folder / "action.yml").read_text()) for folder in (".", "comment"))
IN_VENV = with_inputs("engine: venv", 'trust: "true"')


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return write_code(tmp_path / "code", "pace")


@pytest.fixture
def api() -> Iterator[FakeForge]:
    with fake_forge() as made:
        yield made


@pytest.fixture
def forge(stub_cache: dict[str, str], code: Path, api: FakeForge, tmp_path: Path) -> Forge:
    return Forge(
        folder=tmp_path,
        code=code,
        event={"pull_request": {"number": 7}},
        api=api.url,
        token=TOKEN,
        env=dict(stub_cache),
    )


@pytest.mark.slow
def test_the_workflow_of_the_page_measures_and_then_comments(forge: Forge, api: FakeForge) -> None:
    for _ in range(2):
        jobs = forge.run(IN_VENV)
        assert list(jobs) == ["measure", "comment"]
        assert jobs["measure"].codes["Verdict"] == 1, jobs["measure"].log
        assert jobs["measure"].outputs["exit-code"] == "1"
        assert [line.partition("::what")[0] for line in jobs["measure"].commands] == ["::error title=tfcompare"]
        assert not jobs["comment"].failed, jobs["comment"].log
    assert "<html" in (forge.artefacts["tfcompare"] / "report.html").read_text()[:200]
    assert "slower" in (forge.folder / "machine-1" / "summary").read_text()
    [body] = api.bodies
    assert "`pace`" in body
    assert "<https://forge.example/me/models/actions/runs/99>" in body


@pytest.mark.slow
def test_what_is_measured_takes_no_token_and_changes_nothing_that_comments(
    forge: Forge, api: FakeForge, tmp_path: Path
) -> None:
    write_code(forge.code, "pace", "thief")
    plant(forge)
    jobs = forge.run(IN_VENV)
    assert "it was here" in jobs["measure"].log
    # Without walls it reads the variables of the processes that measure it, and replaces their tfcompare.
    seen = (tmp_path / "machine-1" / "seen").read_text(errors="replace")
    assert "RUNNER_TEMP=" in seen
    assert (tmp_path / "machine-1" / "loot").exists()
    [word] = re.findall("::stop-commands::([0-9a-f]{32})\n", jobs["measure"].log)
    assert word not in seen
    assert_harmless(forge, jobs)
    assert "`pace`" in api.bodies[0]


@pytest.mark.slow
def test_error_texts_are_no_commands(forge: Forge) -> None:
    write_code(forge.code, "shouts")
    jobs = forge.run(IN_VENV)
    assert "##[error]boo" in jobs["measure"].log
    # Progress is one line for each error, also where no CI system reads it.
    assert "died (workload) shouts: RuntimeError: boo ::set-output" in jobs["measure"].log
    assert_harmless(forge, jobs)


def test_settings_of_the_pull_request_choose_no_engine(forge: Forge, code: Path, api: FakeForge) -> None:
    (code / "tfcompare.toml").write_text(SETTINGS + 'engine = "venv"\n')
    forge.env["DOCKER_HOST"] = f"unix://{forge.folder / 'nothing.sock'}"
    for workflow in (WORKFLOW, with_inputs("arguments: --engine venv")):
        jobs = forge.run(workflow)
        assert jobs["measure"].outputs == {"run": "", "exit-code": "4"}, jobs["measure"].log
        assert jobs["measure"].codes["Verdict"] == 4
        assert forge.artefacts == {}
        # Without a run there is no comment, and the job says so.
        assert not jobs["comment"].failed
        assert jobs["comment"].commands == [
            "::warning title=tfcompare::there is no comment; the summary of the measuring job has its text"
        ]
    assert api.bodies == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [("--fail-on 'slower", "quote"), ('--fail-on "slower', "quote"), ("--rounds 4 \\", "backslash")],
)
def test_arguments_that_do_not_parse_end_the_job(forge: Forge, arguments: str, reason: str) -> None:
    done = measured(forge, ARGUMENTS=arguments)
    assert done.codes["Measure"] == 2
    assert done.failed
    [line] = done.log.splitlines()
    assert line.startswith("::error title=tfcompare::arguments: ")
    assert reason in line
    assert "Verdict" not in done.codes


@pytest.mark.parametrize("name", ["a\nrun=/etc", "", "-->", "a  b", "../x"])
def test_a_name_that_would_break_a_line_or_a_path_ends_the_job(forge: Forge, name: str) -> None:
    done = measured(forge, NAME=name)
    assert done.codes["Measure"] == 2
    assert done.log == "::error title=tfcompare::name: letters, digits, dots, dashes and single blanks\n"
    assert (forge.folder / "machine-1" / "GITHUB_OUTPUT").read_text() == ""


@pytest.mark.parametrize(
    "command", ["bisect", "run; touch x", "run --engine", "models x", "$(touch x)", "run\nupgrade"]
)
def test_a_command_is_one_of_three_words(forge: Forge, command: str) -> None:
    done = measured(forge, COMMAND=command)
    assert done.codes["Measure"] == 2
    assert done.log == "::error title=tfcompare::command: run, upgrade or models\n"
    assert not (forge.code / "x").exists()


@pytest.mark.slow
def test_an_upgrade_is_judged_and_told_in_the_comment(forge: Forge, api: FakeForge) -> None:
    jobs = forge.run(
        with_inputs(
            "engine: venv", 'trust: "true"', "command: upgrade", "arguments: 1.14 2.0 --no-remedies --budget 60s"
        )
    )
    assert jobs["measure"].outputs["exit-code"] in ("0", "1"), jobs["measure"].log
    assert not jobs["comment"].failed, jobs["comment"].log
    summary = (forge.folder / "machine-1" / "summary").read_text()
    [body] = api.bodies
    for text in (summary, body):
        assert "`speed`" in text
        assert "GO" in text or "NOT YET" in text


# A .h5 file of Keras 3 does not load in Keras 2, and a variable of oneDNN changes no model.
@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected", "cell"),
    [
        ("2.16 2.8 --formats h5", 6, "`dies`"),
        ("2.16 '2.16 TF_ENABLE_ONEDNN_OPTS=0 as plain' --formats keras", 0, "`ok`"),
    ],
)
def test_saved_models_are_judged_and_told_in_the_comment(
    forge: Forge, api: FakeForge, arguments: str, expected: int, cell: str
) -> None:
    forge.env.clear()
    words = f"arguments: {arguments} --models functional --fail-on died,differs"
    jobs = forge.run(with_inputs("engine: venv", 'trust: "true"', "command: models", words))
    assert jobs["measure"].outputs["exit-code"] == str(expected), jobs["measure"].log
    assert jobs["measure"].codes["Verdict"] == expected
    assert not jobs["comment"].failed, jobs["comment"].log
    assert "<html" in (forge.artefacts["tfcompare"] / "report.html").read_text()[:200]
    [body] = api.bodies
    for text in ((forge.folder / "machine-1" / "summary").read_text(), body):
        [row] = [line for line in text.splitlines() if line.startswith("| `2.16.2` |")]
        assert row.split(" | ")[-1] == f"{cell} |"
    assert "<https://forge.example/me/models/actions/runs/99>" in body


def test_wrong_arguments_fail_the_job_and_leave_no_run(forge: Forge) -> None:
    done = measured(forge, ARGUMENTS="--no-such-flag")
    assert done.outputs == {"run": "", "exit-code": "2"}
    assert done.codes["Verdict"] == 2
    assert "exit code 2" in done.log.splitlines()[-1]


def test_arguments_are_words_and_no_commands(forge: Forge) -> None:
    mark = forge.folder / "mark"
    done = measured(forge, ARGUMENTS=f"--case 'a b' '$(touch {mark})' `touch {mark}` ; touch {mark}")
    assert not mark.exists()
    assert done.codes["Verdict"] == 2, done.log


@pytest.mark.slow
def test_the_folder_and_the_engine_go_before_the_command_of_a_program(forge: Forge, code: Path) -> None:
    (code / "tfcompare.toml").unlink()
    arguments = "1.14 2.0 --rounds 2 -- python -c 'print(1)' --engine docker --output there"
    done = measured(forge, ARGUMENTS=arguments, ENGINE="venv")
    assert done.outputs["exit-code"] == "0", done.log
    [plan] = [json.loads((kept / "plan.json").read_text()) for kept in forge.artefacts.values()]
    assert plan["engine"] == "venv"
    assert "there" in json.dumps(plan["program"])


@pytest.mark.parametrize(("trust", "seen"), [("false", "unset"), ("true", "1"), ("", "unset")])
def test_only_the_input_trusts_settings_and_all_output_is_one_stream(forge: Forge, trust: str, seen: str) -> None:
    forge.env["TFCOMPARE_TRUST"] = "of the job"
    machine = Machine(forge, {"steps": []})
    install(machine.temp / "tfcompare")
    program = machine.temp / "tfcompare" / "bin" / "tfcompare"
    program.write_text('#!/bin/sh\necho "trust: ${TFCOMPARE_TRUST-unset}" >&2\n')
    done = action(machine, "measure", ARGUMENTS="", ENGINE="docker", NAME="x", TRUST=trust)
    # The runner reads two streams at the same time: lines of the second one could come after commands work again.
    assert (done.returncode, done.stderr) == (0, "")
    assert f"trust: {seen}\n" in done.stdout


@pytest.mark.parametrize(
    ("config", "trust", "code"), [("own.toml", "false", 2), ("own.toml", "true", 0), ("", "false", 0)]
)
def test_a_file_of_settings_that_counts_as_the_users_own_takes_trust(
    forge: Forge, config: str, trust: str, code: int
) -> None:
    forge.env["TFCOMPARE_CONFIG"] = config
    machine = Machine(forge, {"steps": []})
    install(machine.temp / "tfcompare")
    done = action(machine, "measure", ARGUMENTS="--no-such-flag", ENGINE="docker", NAME="x", TRUST=trust)
    assert done.returncode == code
    assert done.stdout.startswith("::error title=tfcompare::TFCOMPARE_CONFIG" if code else "::stop-commands::")


def measured(forge: Forge, **inputs: str) -> Job:
    """The measuring job of the workflow with these inputs; they go in as data, as an expression would put them."""
    names = {"ARGUMENTS": "arguments", "NAME": "name", "ENGINE": "engine", "COMMAND": "command"}
    job = yaml.safe_load(WORKFLOW)["jobs"]["measure"]
    job["steps"][-1]["with"] = {names[name]: value for name, value in inputs.items()}
    return Machine(forge, job).run()


def action(machine: Machine, step: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tools" / "action", step],
        env={**machine.env, "GITHUB_OUTPUT": str(machine.folder / "output"), **env},
        cwd=machine.work, capture_output=True, text=True, check=False,
    )  # fmt: skip


# A run of a stranger, and the job that comments.


@pytest.fixture(scope="module")
def small_run(stub_cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    copy(WORKLOADS / "pace.py", folder)
    (folder / "pace.json").write_text(json.dumps({"1.14": (1, 1, 1.0), "2.0": (1, 1, 1.0)}))
    flags = (
        "--versions",
        "1.14,2.0",
        "--case",
        "pace",
        "--engine",
        "venv",
        "--rounds",
        "2",
        "--workload-folder",
        folder,
    )
    tfcompare = Path(os.environ["PATH"].split(":")[0]) / "tfcompare"
    subprocess.run([tfcompare, "run", *flags, "--output", folder / "run"], env={**os.environ, **stub_cache}, check=True)
    return folder / "run"


COMMIT = "a" * 40
FORK = {
    "workflow_run": {
        "id": 42,
        "event": "pull_request",
        "head_sha": COMMIT,
        "head_branch": "faster",
        "head_repository": {"owner": {"login": "stranger"}},
        "pull_requests": [],
    }
}


@pytest.mark.slow
def test_the_run_of_a_fork_is_commented_by_the_other_workflow(forge: Forge, api: FakeForge, small_run: Path) -> None:
    forge.event, forge.artefacts = FORK, {"tfcompare": small_run}
    # The run says nothing of where it goes: pull request 8 has the commit that GitHub names.
    api.pulls = [(7, "stranger:faster", "b" * 40), (7, "me:faster", COMMIT)]
    jobs = forge.run(FOR_FORKS)
    assert "no open pull request from stranger:faster has the commit" in jobs["comment"].log
    assert api.bodies == []
    api.pulls.append((7, "stranger:faster", COMMIT))
    assert forge.run(FOR_FORKS)["comment"].commands == []
    [body] = api.bodies
    assert "/actions/runs/42>" in body


@pytest.mark.slow
def test_a_comment_that_is_refused_fails_nothing(forge: Forge, api: FakeForge, small_run: Path) -> None:
    forge.token, forge.artefacts = "of a fork", {"tfcompare": small_run}
    job = Machine(forge, yaml.safe_load(WORKFLOW)["jobs"]["comment"]).run()
    assert not job.failed
    assert "401 Bad credentials" in job.log
    assert [line.partition("::there")[0] for line in job.commands] == ["::warning title=tfcompare"]


@pytest.mark.slow
def test_a_run_of_a_stranger_is_only_read(forge: Forge, api: FakeForge, small_run: Path) -> None:
    hostile = forge.folder / "hostile"
    copytree(small_run, hostile)
    mark = forge.folder / "mark"
    for name in ("sitecustomize.py", "orchestrator.py", "typer.py"):
        (hostile / name).write_text(f"open({str(mark)!r}, 'w')\n")
    (hostile / "tfcompare.toml").write_text("no settings\n")
    (hostile / "workloads" / "pace.py").write_text(f"open({str(mark)!r}, 'w')\n")
    forge.artefacts = {"tfcompare": hostile}
    forge.env |= {"PYTHONPATH": str(hostile), "TFCOMPARE_CONFIG": str(hostile / "tfcompare.toml")}
    job = Machine(forge, yaml.safe_load(WORKFLOW)["jobs"]["comment"]).run()
    assert job.commands == [], job.log
    assert len(api.bodies) == 1
    (hostile / "plan.json").write_text('{"run": "x\\n::error::boo"}')
    job = Machine(forge, yaml.safe_load(WORKFLOW)["jobs"]["comment"]).run()
    assert [line.partition("::there")[0] for line in job.commands] == ["::warning title=tfcompare"]
    assert not mark.exists()


def test_a_table_of_saved_models_of_a_stranger_is_only_read(forge: Forge, api: FakeForge) -> None:
    hostile = forge.folder / "hostile"
    hostile.mkdir()
    reason = "</code>\n::set-output name=x::y\n##[error]boo <img src=x> @octocat `x` | y"
    write_models(table(hostile, wrong={("2.8.4", "2.16.2", "nested"): ("dies", reason)}))
    mark = forge.folder / "mark"
    for name in ("sitecustomize.py", "orchestrator.py", "typer.py"):
        (hostile / name).write_text(f"open({str(mark)!r}, 'w')\n")
    forge.artefacts = {"tfcompare": hostile}
    forge.env["PYTHONPATH"] = str(hostile)
    job = Machine(forge, yaml.safe_load(WORKFLOW)["jobs"]["comment"]).run()
    assert job.commands == [], job.log
    assert not mark.exists()
    [body] = api.bodies
    assert "| `2.8.4` | `h5, 2` | `ok` | `1 dies` |" in body
    assert all(sign not in body for sign in ("<img", "@octocat", "\n::"))
    (hostile / "models.json").write_text((hostile / "models.json").read_text().replace('"ok"', '"::error::boo"'))
    job = Machine(forge, yaml.safe_load(WORKFLOW)["jobs"]["comment"]).run()
    assert [line.partition("::there")[0] for line in job.commands] == ["::warning title=tfcompare"]
    assert api.bodies == [body]


# Installing.


def test_an_old_python_is_an_error(forge: Forge, tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    done = action(Machine(forge, {"steps": []}), "install", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "::error title=tfcompare::tfcompare needs Python 3.11 or newer" in done.stdout


def checkout(folder: Path) -> Path:
    """What the action needs of a checkout of tfcompare, as its files are here."""
    for name in ("orchestrator", "tfcompare", "images", "workloads", "requirements", "tools", "LICENSE", "README.md"):
        copied = copytree if (ROOT / name).is_dir() else copy
        copied(ROOT / name, folder / name)
    copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.long
@pytest.mark.slow
def test_dependencies_are_those_that_are_locked_whatever_the_variables_of_the_job_are(
    forge: Forge, tmp_path: Path
) -> None:
    source = checkout(tmp_path / "source")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("pip.py", "venv.py", "sitecustomize.py"):
        (hostile / name).write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    (hostile / "more.txt").write_text("no-such-package\n")
    elsewhere = tmp_path / "elsewhere"
    machine = Machine(forge, {"steps": []})
    # What an earlier step of the job may have left is replaced.
    install(machine.temp / "tfcompare")
    done = subprocess.run(
        [source / "tools" / "action", "install"],
        env={
            **machine.env, "PYTHONPATH": str(hostile), "PIP_TARGET": str(elsewhere), "PIP_DRY_RUN": "1",
            "PIP_REQUIREMENT": str(hostile / "more.txt"), "PIP_CONSTRAINT": str(hostile / "more.txt"),
            "PIP_NO_DEPS": "1", "PIP_PREFIX": str(elsewhere),
        },
        cwd=hostile, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "mark").exists()
    assert not elsewhere.exists()
    home = machine.temp / "tfcompare" / "bin"
    listed = subprocess.run([home / "python", "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    locked = (ROOT / "requirements" / "run.txt").read_text()
    packages = {canonicalize_name(name): version for name, version in re.findall("^(.+)==(.+)$", listed, re.MULTILINE)}
    # Pythons have different versions of some.
    assert set(packages.items()) <= set(re.findall(r"^([\w.-]+)==([^ ]+)", locked, re.MULTILINE))
    assert {"numpy", "uv", "duckdb", "typer"} <= set(packages)
    assert "tfcompare" in subprocess.run([home / "tfcompare", "--version"], capture_output=True, text=True).stdout


@pytest.mark.slow
def test_a_dependency_with_another_hash_is_not_installed(forge: Forge, tmp_path: Path) -> None:
    source = checkout(tmp_path / "source")
    lock = source / "requirements" / "run.txt"
    wrong = re.sub(r"(?<=sha256:)[0-9a-f]{8}", "00000000", lock.read_text())
    lock.write_text(wrong)
    machine = Machine(forge, {"steps": []})
    done = subprocess.run(
        [source / "tools" / "action", "install"],
        env=machine.env, cwd=machine.work, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HASH" in done.stderr.upper()
    assert not (machine.temp / "tfcompare" / "bin" / "tfcompare").exists()


# What the files say.


def test_every_step_of_the_actions_is_one_of_the_script_and_takes_only_variables() -> None:
    steps = [*ACTION["runs"]["steps"], *COMMENT["runs"]["steps"]]
    runs = [step["run"] for step in steps if "run" in step]
    assert [run.split()[-1] for run in runs] == ["install", "measure", "verdict", "install", "comment"]
    assert not any("${{" in run for run in runs)
    script = (ROOT / "tools" / "action").read_text()
    for step in steps:
        for name in step.get("env", {}):
            assert re.search(rf"\b{name}\b", script) or name == "GITHUB_TOKEN"


def test_only_the_action_that_comments_takes_a_token_and_it_takes_no_code() -> None:
    assert not re.search("token|secret", json.dumps(ACTION["inputs"]) + json.dumps(ACTION["runs"]), re.IGNORECASE)
    assert "token" in COMMENT["inputs"]
    jobs = yaml.safe_load(WORKFLOW)["jobs"] | {"forks": yaml.safe_load(FOR_FORKS)["jobs"]["comment"]}
    assert jobs["measure"]["permissions"] == {"contents": "read"}
    [checkout] = [step for step in jobs["measure"]["steps"] if "checkout" in step["uses"]]
    assert checkout["with"]["persist-credentials"] is False
    for name in ("comment", "forks"):
        assert jobs[name]["permissions"] == {"actions": "read", "pull-requests": "write"}
        assert [step["uses"].partition("@")[0] for step in jobs[name]["steps"]] == [
            "actions/setup-python", "OWNER/tfcompare/comment",
        ]  # fmt: skip
    for workflow in (WORKFLOW, FOR_FORKS, ON_REQUEST):
        assert yaml.safe_load(workflow)["permissions"] == {}


def test_every_foreign_action_is_pinned_by_commit_and_names_its_version() -> None:
    own = [ROOT / folder / "action.yml" for folder in (".", "comment", "request")]
    files = [*own, *(ROOT / ".github" / "workflows").glob("*.yml")]
    files += [path for path in (ROOT / "docs").glob("*.md") if re.search(r"\buses: ", path.read_text())]
    lines = [line for path in files for line in path.read_text().splitlines()]
    uses = [found[1] for line in lines if (found := re.search(r"\buses: (.*)", line))]
    foreign = [used for used in uses if not used.startswith("OWNER/tfcompare")]
    assert len(foreign) > 20
    assert [used for used in foreign if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used)] == []
    refs = [line.strip() for line in lines if re.match(r" +ref: ", line)]
    # That of a request is the commit that GitHub named.
    requested = "ref: ${{ needs.read.outputs.commit }}"
    assert [ref for ref in refs if ref != requested and not re.fullmatch(r"ref: [0-9a-f]{40} # v[\d.]+", ref)] == []


# A comment that asks for a run.
ASKED = {
    "action": "created",
    "issue": {"number": 7, "pull_request": {"url": "https://forge.example"}},
    "comment": {
        "body": "/tfcompare --rounds 4", "author_association": "MEMBER", "created_at": "2026-03-01T10:00:09Z",
    },
}  # fmt: skip
BY_REQUEST = ON_REQUEST.replace(
    "          name: tfcompare-request\n",
    '          name: tfcompare-request\n          engine: venv\n          trust: "true"\n',
    1,
)


@pytest.fixture
def asked(forge: Forge, api: FakeForge) -> Forge:
    forge.event = json.loads(json.dumps(ASKED))
    api.pull = {"head": {"sha": COMMIT, "repo": {"pushed_at": "2026-03-01T10:00:00Z"}}}
    return forge


@pytest.mark.slow
def test_a_members_comment_is_measured_at_the_commit_that_was_there(asked: Forge, api: FakeForge) -> None:
    plant(asked)
    jobs = asked.run(BY_REQUEST)
    assert list(jobs) == ["read", "measure", "comment"], jobs["read"].log
    assert asked.checked_out == [COMMIT]
    assert jobs["measure"].outputs["exit-code"] == "1", jobs["measure"].log
    assert not jobs["comment"].failed, jobs["comment"].log
    [body] = api.bodies
    assert body.startswith("<!-- tfcompare: tfcompare-request -->")
    assert "`pace`" in body


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"author_association": "CONTRIBUTOR"}, "only members of the repository"),
        ({"body": "/tfcompare --engine venv"}, "cannot set '--engine'"),
        ({"body": "/tfcompare '2.15 evil==1'"}, "only name versions"),
        ({"body": "/tfcompare --case 'a\nb'"}, "quotation mark"),
        ({"created_at": "2026-03-01T09:59:59Z"}, "pushed to after the comment"),
        ({"body": "/tfcompare --case '::error::x'\n##[error]y", "author_association": "NONE"}, "only members"),
    ],
)
def test_a_refused_comment_measures_nothing(asked: Forge, api: FakeForge, changes: dict[str, str], reason: str) -> None:
    asked.event["comment"] |= changes
    jobs = asked.run(BY_REQUEST)
    assert list(jobs) == ["read"]
    assert reason in jobs["read"].log
    assert jobs["read"].commands == []
    assert (asked.checked_out, api.bodies) == ([], [])


@pytest.mark.parametrize("body", ["nice work", "please /tfcompare"])
def test_other_comments_start_no_job(asked: Forge, body: str) -> None:
    asked.event["comment"]["body"] = body
    assert asked.run(BY_REQUEST) == {}


def test_the_request_workflow_gives_the_measuring_job_no_right_to_write() -> None:
    jobs = yaml.safe_load(ON_REQUEST)["jobs"]
    assert jobs["measure"]["permissions"] == {"contents": "read"}
    assert jobs["read"]["permissions"] == {"pull-requests": "read"}
    [checkout] = [step for step in jobs["measure"]["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert checkout["with"] == {"ref": "${{ needs.read.outputs.commit }}", "persist-credentials": False}
    assert not any("checkout" in step.get("uses", "") for name in ("read", "comment") for step in jobs[name]["steps"])

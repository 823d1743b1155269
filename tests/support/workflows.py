"""Runs workflows as GitHub's runner does, as far as those of the documentation and the actions here need.

Steps are real processes with real files of outputs. Stand-ins are what GitHub alone has: checkouts and artefacts, which
are copies of folders, and the log, whose commands are found by the rules of the runner's own code.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

COMMANDS = [
    "error",
    "warning",
    "notice",
    "debug",
    "set-output",
    "save-state",
    "set-env",
    "add-path",
    "add-mask",
    "add-matcher",
    "group",
    "echo",
]
OPERATORS = {
    "||": lambda left, right: left or right,
    "&&": lambda left, right: left and right,
    # What is not known equals an empty text.
    "!=": lambda left, right: (left or "") != (right or ""),
    "==": lambda left, right: (left or "") == (right or ""),
}
# A runner has no such variables of the caller.
OWN = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "RUNNER_", "PYTHON"))}


def evaluate(text: str, contexts: dict[str, Any]) -> Any:
    """The value of an expression without brackets."""
    text = text.strip()
    for operator, apply in OPERATORS.items():
        left, split, right = text.partition(operator)
        if split:
            return apply(evaluate(left, contexts), evaluate(right, contexts))
    if text.startswith("'"):
        return text.strip("'")
    if text in ("always()", "!cancelled()"):
        return True
    if found := re.fullmatch(r"startsWith\((.*), '(.*)'\)", text):
        return str(evaluate(found[1], contexts)).lower().startswith(found[2].lower())
    value: Any = contexts
    for name in text.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def fill(value: Any, contexts: dict[str, Any]) -> str:
    def put(found: re.Match[str]) -> str:
        result = evaluate(found[1], contexts)
        return "" if result is None else str(result)

    text = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else str(value)
    return re.sub(r"\$\{\{(.*?)\}\}", put, text)


def commands(log: str) -> list[str]:
    """The workflow commands that the runner would carry out, in its two notations."""
    carried_out, resume = [], ""
    for line in re.split(r"\r\n|\r|\n", log):
        found = re.match(r"\s*::([\w-]+)(?: [^:]*)?::(.*)", line) or re.search(r"##\[([\w-]+)(?: [^\]]*)?\](.*)", line)
        if not found:
            continue
        if resume:
            resume = "" if found[1] == resume else resume
        elif found[1] == "stop-commands":
            resume = found[2]
        elif found[1] in COMMANDS:
            carried_out.append(line.strip())
    return carried_out


@dataclass
class Job:
    """A job that has ended: whether it failed, what its steps printed, and the exit code of each by its name."""

    log: str = ""
    failed: bool = False
    codes: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> list[str]:
        return commands(self.log)


@dataclass
class Forge:
    """A repository and what its runs have kept; `env` is what each job has on top of the runner's own."""

    folder: Path
    # What a checkout gives: the code of the pull request.
    code: Path
    event: dict[str, Any]
    api: str
    token: str
    env: dict[str, str] = field(default_factory=dict)
    artefacts: dict[str, Path] = field(default_factory=dict)
    machines: int = 0
    # The commits that jobs have checked out; '' is that of the event.
    checked_out: list[str] = field(default_factory=list)

    def run(self, workflow: str) -> dict[str, Job]:
        """Run the jobs of a workflow, each on a new machine, in the order in which they are written."""
        done: dict[str, Job] = {}
        needs: dict[str, Any] = {}
        for name, job in yaml.safe_load(workflow)["jobs"].items():
            machine, condition = Machine(self, job, needs), str(job.get("if", ""))
            needed = job.get("needs", [])
            failed = any(
                each not in done or done[each].failed for each in ([needed] if isinstance(needed, str) else needed)
            )
            if failed and "!cancelled()" not in condition:
                continue
            if condition and not evaluate(condition.removeprefix("${{").removesuffix("}}"), machine.contexts):
                continue
            done[name] = machine.run()
            outputs = {key: fill(value, machine.contexts) for key, value in job.get("outputs", {}).items()}
            needs[name] = {"outputs": outputs}
        return done


class Machine:
    """A runner with one job. Each has a separate folder, and its steps share what it holds."""

    def __init__(self, forge: Forge, job: dict[str, Any], needs: dict[str, Any] | None = None) -> None:
        self.forge, self.job, self.done = forge, job, Job()
        forge.machines += 1
        self.folder = forge.folder / f"machine-{forge.machines}"
        self.temp, self.work = self.folder / "temp", self.folder / "work"
        self.temp.mkdir(parents=True)
        self.work.mkdir()
        (self.folder / "event.json").write_text(json.dumps(forge.event))
        self.paths: list[str] = []
        github = {
            "token": forge.token, "run_id": "99", "server_url": "https://forge.example", "repository": "me/models",
            "event": forge.event,
        }  # fmt: skip
        self.contexts: dict[str, Any] = {"github": github, "runner": {"temp": str(self.temp)}, "needs": needs or {}}
        self.env = {
            **OWN, **forge.env, "RUNNER_TEMP": str(self.temp), "GITHUB_ACTIONS": "true", "GITHUB_API_URL": forge.api,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"), "GITHUB_REPOSITORY": "me/models",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "GITHUB_WORKSPACE": str(self.work),
        }  # fmt: skip

    def run(self) -> Job:
        self.env |= {name: fill(value, self.contexts) for name, value in self.job.get("env", {}).items()}
        self._run_steps(self.job["steps"], self.contexts, self.work)
        return self.done

    def _run_steps(self, steps: list[dict[str, Any]], contexts: dict[str, Any], action: Path) -> None:
        contexts["steps"] = results = {}
        for number, step in enumerate(steps):
            condition = str(step.get("if", ""))
            if self.done.failed and "always()" not in condition and "!cancelled()" not in condition:
                continue
            if condition and not evaluate(condition.removeprefix("${{").removesuffix("}}"), contexts):
                continue
            failed, self.done.failed = self.done.failed, False
            outputs = self._use(step, contexts) if "uses" in step else self._run_script(step, contexts, action)
            results[step.get("id", number)] = {"outputs": outputs}
            self.done.failed = failed or (self.done.failed and not step.get("continue-on-error"))

    def _use(self, step: dict[str, Any], contexts: dict[str, Any]) -> dict[str, str]:
        given = {name: fill(value, contexts) for name, value in step.get("with", {}).items()}
        name = step["uses"].partition("@")[0]
        if name == "actions/checkout":
            self.forge.checked_out.append(given.get("ref", ""))
            shutil.copytree(self.forge.code, self.work, dirs_exist_ok=True)
        elif name == "actions/upload-artifact":
            kept = self.forge.artefacts[given["name"]] = self.folder / "kept" / given["name"]
            shutil.copytree(given["path"], kept)
        elif name == "actions/download-artifact":
            if given["name"] not in self.forge.artefacts:
                self.done.failed = True
                return {}
            shutil.copytree(self.forge.artefacts[given["name"]], given["path"], symlinks=True, dirs_exist_ok=True)
        elif name.startswith("OWNER/tfcompare"):
            return self._run_action(ROOT / name.removeprefix("OWNER/tfcompare").lstrip("/"), given)
        else:
            assert name == "actions/setup-python"
        return {}

    def _run_action(self, folder: Path, given: dict[str, str]) -> dict[str, str]:
        action = yaml.safe_load((folder / "action.yml").read_text())
        unknown = set(given) - set(action["inputs"])
        assert not unknown, f"the action has no inputs {unknown}"
        defaults = {
            name: fill(declared.get("default", ""), self.contexts) for name, declared in action["inputs"].items()
        }
        contexts = {**self.contexts, "inputs": {**defaults, **given}}
        self._run_steps(action["runs"]["steps"], contexts, folder)
        outputs = {name: fill(output["value"], contexts) for name, output in action.get("outputs", {}).items()}
        self.done.outputs |= outputs
        return outputs

    def _run_script(self, step: dict[str, Any], contexts: dict[str, Any], action: Path) -> dict[str, str]:
        if step["run"].endswith(" install"):
            # To install it takes a minute; a separate test does.
            install(self.temp / "tfcompare")
            return {}
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
        for path in files.values():
            path.write_text("")
        script = self.folder / "script.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            env={
                **self.env, "PATH": ":".join([*self.paths, self.env["PATH"]]), "GITHUB_ACTION_PATH": str(action),
                **{name: str(path) for name, path in files.items()},
                **{name: fill(value, contexts) for name, value in step.get("env", {}).items()},
            },
            cwd=self.work / fill(step.get("working-directory", ""), contexts),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        self.done.log += done.stdout
        self.done.codes[step.get("name", step["run"])] = done.returncode
        self.done.failed = done.returncode != 0
        self.env |= read_lines(files["GITHUB_ENV"])
        self.paths += files["GITHUB_PATH"].read_text().splitlines()
        return read_lines(files["GITHUB_OUTPUT"])


def read_lines(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def install(home: Path) -> None:
    """Put the tfcompare of the tests where the action installs it, as files that an attacker may replace."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "bin").mkdir(parents=True)
    for name in ("python", "tfcompare"):
        program = home / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent / name}" "$@"\n')
        program.chmod(0o755)

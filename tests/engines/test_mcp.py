"""`tfcompare mcp` and the official client over stdio: it reads and measures, and refuses what nobody has allowed."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters

from orchestrator.child_process import PROGRAM
from orchestrator.cli.verbs import VERBS
from tests.conftest import run_command
from tests.support.builders import NEW, OLD
from tests.support.small_run import write_run

WORKLOADS = Path(__file__).parent / "workloads"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a run of an earlier day."""
    folder = tmp_path / "project"
    (folder / "runs").mkdir(parents=True)
    write_run(folder / "runs" / "first")
    return folder


def converse(
    project: Path, ask: Callable[[Client], Awaitable[Any]], *flags: str, env: dict[str, str] | None = None
) -> Any:
    """Let the client start the server in the project, and return what the conversation returns."""
    variables = {**os.environ, "TFCOMPARE_DATA": str(project.parent / "user"), **(env or {})}
    server = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "mcp", *flags], cwd=str(project), env=variables
    )

    async def talk() -> Any:
        async with Client(server) as client:
            return await ask(client)

    return anyio.run(talk)


def call(project: Path, name: str, *flags: str, env: dict[str, str] | None = None, **arguments: Any) -> Any:
    async def ask(client: Client) -> Any:
        return await client.call_tool(name, arguments)

    return converse(project, ask, *flags, env=env)


def test_the_client_lists_ten_verbs_with_their_fields(project: Path):
    async def ask(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in converse(project, ask)}
    assert list(tools) == list(VERBS)
    assert tools["run"].input_schema["properties"]["targets"]["type"] == "array"
    assert tools["report"].annotations.read_only_hint
    assert not tools["run"].annotations.read_only_hint


def test_a_report_is_the_json_of_the_command_line(project: Path):
    result = call(project, "report", run="runs/first")
    printed = run_command(*PROGRAM, "report", str(project / "runs" / "first"), "--format", "json", cwd=project)
    assert not result.is_error
    assert result.structured_content["exit_code"] == 0
    assert result.structured_content["answer"] == json.loads(printed.stdout)
    assert json.loads(result.content[0].text) == result.structured_content


def test_a_verdict_is_explained(project: Path):
    result = call(project, "explain", run="runs/first", case="power")
    answer = result.structured_content["answer"]
    assert answer["schema"] == "tfcompare.explanation/1"
    [verdict] = [each for each in answer["verdicts"] if each["metric"] == "time" and each["kind"] == "target"]
    assert (verdict["baseline"], verdict["candidate"], verdict["shown"]) == (OLD, NEW, "slower")
    assert "Both sides ran in new processes" in verdict["sentences"][0]


def test_lists_are_arrays_and_errors_are_those_of_the_command_line(project: Path):
    result = call(project, "list", what="suites")
    assert {"quick", "smoke"} <= {each["suite"] for each in result.structured_content["answer"]}
    result = call(project, "report", run="runs/second")
    assert result.is_error
    assert result.structured_content["exit_code"] == 2
    assert "runs/second" in result.structured_content["messages"][-1]


@pytest.mark.parametrize(
    ("verb", "arguments", "reason"),
    [
        ("run", {"targets": ["2.13", "2.16"], "workload_folder": "/etc"}, "outside of"),
        ("run", {"targets": ["2.13", "--output=/etc"]}, "no flags"),
        ("report", {"run": "../elsewhere"}, "tfcompare mcp --allow"),
        ("run", {"targets": ["2.13"], "output": "/etc"}, "Extra inputs"),
        ("trust", {}, "there is no verb"),
    ],
)
def test_a_refusal_is_told_and_the_server_goes_on(project: Path, verb: str, arguments: dict[str, Any], reason: str):
    async def ask(client: Client) -> Any:
        refused = await client.call_tool(verb, arguments)
        return refused, await client.call_tool("report", {"run": "runs/first"})

    refused, answered = converse(project, ask)
    assert refused.is_error
    assert reason in refused.content[0].text
    assert not answered.is_error


def test_settings_that_nobody_trusts_count_for_no_program(project: Path):
    (project / "tfcompare.toml").write_text('index-url = "https://evil.example/simple"\n')
    result = call(project, "run", targets=["2.13", "2.16"], cases=["power[style=function]"], dry_run=True)
    assert result.is_error
    assert result.structured_content["exit_code"] == 2
    assert "index-url counts only in a folder that you trust" in " ".join(result.structured_content["messages"])


@pytest.fixture
def pace(project: Path) -> Path:
    """A project whose workload takes half as long again in 2.0."""
    (project / "own").mkdir()
    copy(WORKLOADS / "pace.py", project / "own")
    (project / "own" / "pace.json").write_text(json.dumps({"1.14": (10, 20, 1.0), "2.0": (15, 20, 1.0)}))
    return project


OWN = {"targets": ["1.14", "2.0"], "workload_folder": "own", "budget": "60s"}


@pytest.mark.slow
def test_a_run_measures_what_the_user_allowed_and_reports_its_progress(stub_cache: dict[str, str], pace: Path):
    told: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def ask(client: Client) -> Any:
        measured = await client.call_tool("run", {**OWN, "engine": "venv"}, progress_callback=hear)
        return measured, await client.call_tool("explain", {"case": "pace"})

    measured, explained = converse(pace, ask, "--allow", ".", env=stub_cache)
    content = measured.structured_content
    assert (measured.is_error, content["exit_code"]) == (False, 0), content["messages"]
    [comparison] = [each for each in content["answer"]["comparisons"] if each["kind"] == "target"]
    assert comparison["verdict"] == "slower"
    assert (pace / content["run"] / "plan.json").is_file()
    assert any("plan:" in line for line in told)
    [verdict] = [each for each in explained.structured_content["answer"]["verdicts"] if each["metric"] == "time"]
    assert verdict["shown"] == "slower"


@pytest.mark.slow
def test_code_that_the_user_has_not_allowed_needs_a_container(stub_cache: dict[str, str], pace: Path):
    env = {**stub_cache, "DOCKER_HOST": f"unix://{pace}/nothing.sock"}
    refused = call(pace, "run", **OWN, engine="venv", env=env)
    assert "has not allowed that" in refused.content[0].text
    # Without an engine, `auto` becomes no virtual environment.
    without = call(pace, "run", **OWN, env=env)
    assert (without.is_error, without.structured_content["exit_code"]) == (True, 4)
    assert not list((pace / "runs").glob("2*"))


@pytest.mark.slow
def test_a_request_that_is_taken_back_ends_its_command(stub_cache: dict[str, str], pace: Path):
    (pace / "own" / "pace.json").write_text(json.dumps({"1.14": (400, 20, 1.0), "2.0": (600, 20, 1.0)}))

    async def ask(client: Client) -> Any:
        begun = anyio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            if "plan:" in (message or ""):
                begun.set()

        async with anyio.create_task_group() as group:

            async def measure() -> None:
                await client.call_tool("run", {**OWN, "engine": "venv", "budget": "10m"}, progress_callback=hear)

            group.start_soon(measure)
            await begun.wait()
            await anyio.sleep(3)
            group.cancel_scope.cancel()
        return await client.call_tool("list", {"what": "suites"})

    after = converse(pace, ask, "--allow", ".", env=stub_cache)
    assert not after.is_error
    [run] = (pace / "runs").glob("2*")
    # It ended as after an interrupt, so its journal has an end and nothing holds it.
    assert '"finished"' in (run / "journal.jsonl").read_text() or "interrupted" in (run / "journal.jsonl").read_text()


def test_without_the_package_the_command_says_what_to_install(project: Path):
    blocked = project / "blocked"
    (blocked / "mcp").mkdir(parents=True)
    (blocked / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError(name='mcp')\n")
    code = f"import sys; sys.path.insert(0, {str(blocked)!r}); {PROGRAM[-1]}"
    done = subprocess.run([sys.executable, "-P", "-c", code, "mcp"], capture_output=True, text=True, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tfcompare: mcp is not installed: pip install 'tfcompare[mcp]'\n"

"""Secrets are planted wherever a schedule could pick them up, and everything that it shows and writes is searched for
them."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from orchestrator import redact
from orchestrator.catalog.variables import find_of_tensorflow
from orchestrator.cli.nightly.schedule import SERVERS
from orchestrator.engines.environment import worker_variables
from orchestrator.nightly import lock, night
from orchestrator.nightly.options import NightOptions
from orchestrator.nightly.schedule import serve as serving
from orchestrator.nightly.schedule import units
from orchestrator.nightly.schedule.cron import Cron
from orchestrator.nightly.schedule.systemd import Systemd
from orchestrator.nightly.schedule.units import Schedule
from tests.support.schedules import planned, wanted
from tests.support.stand_ins import CRONTAB, FLAGS, SYSTEMCTL, Machine

# Every planted secret contains this word, in some case.
WORD = "planted"
NOTIFY = {
    "slack": "slack://PlantedA/PlantedB/PlantedC/#ml",
    "telegram": "tgram://123456:Planted/987",
    "mail": "mailtos://me:planted@mail.example.org?to=team@example.org",
    "mail with a reference": "mailtos://me:${PASSWORD}@mail.example.org/planted",
    "webhook": "json://hook.example.org/planted",
    "a token and a reference": "slack://${A}/Planted/${C}",
}
INDEX = "https://me:planted@mirror.example.org/planted/simple"
VARIABLES = {
    "TFCOMPARE_NOTIFY": "slack://PlantedA/PlantedB/PlantedC/#ml tgram://123456:Planted/987",
    "TFCOMPARE_INDEX_URL": INDEX,
    "TF_VAR_db_password": "planted",
    "TF_TOKEN_app_terraform_io": "planted",
    "TF_CLI_CONFIG_FILE": "/home/me/planted.tfrc",
    "TF_CLI_ARGS_plan": "-var x=planted",
    "TF_HTTP_PASSWORD": "planted",
    "TF_ENCRYPTION": "planted",
    "TFCOMPARE_PASS": "planted",
    "PIP_TOKEN": "planted",
    "UV_API_KEY": "planted",
    "curl_secret": "planted",
    "TFCOMPARE_my_secret": "planted",
    "DOCKER_AUTH_CONFIG": '{"auths": "planted"}',
    "PIP_FIND_LINKS": "https://mirror.example.org/planted/",
    "HTTPS_PROXY": "me:planted@proxy.example.org:3128",
    "https_proxy": "http://me:planted@proxy.example.org:3128",
    "MY_PASSWORD": "planted",
}


@pytest.fixture
def planted(machine: Machine) -> Machine:
    machine.set(**VARIABLES, TF_ENABLE_ONEDNN_OPTS="0", OMP_NUM_THREADS="2", XLA_FLAGS="--xla_dump_to=/tmp/x")
    return machine


def use(machine: Machine, scheduler: str) -> None:
    machine.has(*(("crontab", CRONTAB) if scheduler == "cron" else ("systemctl", SYSTEMCTL)))
    machine.set(REFUSED="" if scheduler == "cron" else "never asked for")


def written(machine: Machine) -> dict[Path, str]:
    """Every file that the command wrote, except for the stand-ins."""
    files = [path for path in machine.folder.rglob("*") if path.is_file() and machine.bin not in path.parents]
    return {path: path.read_text() for path in files}


def assert_clean(*texts: object) -> None:
    for text in texts:
        assert WORD not in str(text).lower()


@pytest.mark.parametrize("scheduler", ["cron", "systemd"])
def test_nothing_of_the_environment_that_may_be_secret_is_shown_or_written(planted: Machine, call, scheduler: str):
    use(planted, scheduler)
    code, out, err = call("install", *FLAGS, "--inherit-env", "--scheduler", scheduler, "--yes")
    assert code == 0, err
    assert_clean(out, err, *written(planted).values(), *call("status"), *call("status", "--format", "json"))
    text = "".join(written(planted).values())
    for name in ("TF_ENABLE_ONEDNN_OPTS=0", "OMP_NUM_THREADS=2", "XLA_FLAGS=", "PATH="):
        assert name in text
    assert "TF_VAR" not in text + out + err
    # Each is named, so that somebody can provide it in another way.
    for name in ("TFCOMPARE_NOTIFY", "TFCOMPARE_INDEX_URL", "DOCKER_AUTH_CONFIG", "PIP_FIND_LINKS", "HTTPS_PROXY"):
        assert f"note: {name} may hold a secret and is not stored" in err
    assert_clean(*call("uninstall"))


@pytest.mark.parametrize("scheduler", ["cron", "systemd"])
def test_what_is_written_is_for_its_owner_alone_from_the_start(planted: Machine, call, monkeypatch, scheduler: str):
    use(planted, scheduler)
    modes = []
    create = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **folder: int) -> int:
        if flags & os.O_EXCL:
            modes.append(mode & 0o077)
        return create(path, flags, mode, **folder)

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(0o022)
    try:
        assert call("install", *FLAGS, "--scheduler", scheduler, "--yes")[0] == 0
    finally:
        os.umask(before)
    assert modes
    assert set(modes) == {0}
    ours = [path for path in written(planted) if path.name.startswith(("nightly.", "nights-", "tfcompare-nightly."))]
    assert len(ours) == (2 if scheduler == "cron" else 3)
    assert {path.stat().st_mode & 0o077 for path in ours} == {0}


@pytest.mark.parametrize("url", NOTIFY.values(), ids=NOTIFY)
@pytest.mark.parametrize("joined", [True, False])
def test_a_schedule_with_a_token_is_refused_with_the_way_to_do_it(machine: Machine, call, url: str, joined: bool):
    use(machine, "cron")
    flag = (f"--notify={url}",) if joined else ("--notify", url)
    code, out, err = call("install", *FLAGS, *flag, "--yes")
    assert code == 2
    assert_clean(out, err, *written(machine).values())
    assert f"--notify {url.partition('://')[0]}://" in err
    assert "a schedule must not contain a token" in err
    assert "(chmod 600), and pass --notify-file FILE" in err
    assert machine.files() == []


def test_a_url_that_only_names_variables_is_written(machine: Machine, call):
    use(machine, "cron")
    code, out, err = call("install", *FLAGS, "--notify", "${HOOK}", "--notify=${ONE}${TWO}", "--yes")
    assert code == 0, err
    assert "--notify '${HOOK}' '--notify=${ONE}${TWO}'" in out
    assert "--notify '${HOOK}' '--notify=${ONE}${TWO}'" in call("status")[1]


def test_a_file_of_urls_is_named_and_checked(machine: Machine, call):
    use(machine, "cron")
    file = machine.folder / "urls"
    file.write_text(NOTIFY["slack"])
    file.chmod(0o644)
    code, out, err = call("install", *FLAGS, "--notify-file", str(file), "--yes")
    assert code == 0
    assert f"other users can read {file}, which holds secrets; run chmod 600 {file}" in err
    assert_clean(out, err, Cron().script.read_text())


@pytest.mark.parametrize("flag", [("--index-url", INDEX), (f"--index-url={INDEX}",)])
def test_the_address_of_an_index_goes_by_a_file_of_variables(machine: Machine, call, flag: tuple[str, ...]):
    use(machine, "cron")
    code, out, err = call("install", *FLAGS, *flag, "--yes")
    assert code == 2
    assert_clean(out, err)
    assert "--index-url https://****@mirror.example.org/...: a schedule must not contain" in err
    assert "Write TFCOMPARE_INDEX_URL='URL' to a file that only you can read (chmod 600)" in err


def test_a_login_in_any_other_flag_is_refused(machine: Machine, call):
    use(machine, "cron")
    for command in ("install", "serve"):
        code, out, err = call(command, *FLAGS, "--base", "https://me:planted@registry.example.org/x")
        assert code == 2
        assert_clean(out, err)
        assert "https://****@registry.example.org/x: a schedule must not contain a login" in err


def test_serve_hands_secrets_on_by_variables_and_leaves_them_out_of_its_lock(machine: Machine, call, monkeypatch):
    machine.set(TFCOMPARE_NOTIFY="tgram://123456:Planted/987")
    found: list[Schedule] = []

    def serve(wanted: Schedule, say: Callable[[str], None]) -> None:
        found.append(wanted)
        holder = lock.holder(name=SERVERS["cpu"])
        assert holder is not None
        assert_clean(holder, *written(machine).values(), *call("status"), *call("status", "--format", "json"))
        [file] = machine.folder.rglob(f"{SERVERS['cpu']}-*.lock")
        assert file.stat().st_mode & 0o777 == 0o600

    monkeypatch.setattr(serving, "serve_nights", serve)
    code, out, err = call("serve", *FLAGS, "--notify", NOTIFY["slack"], "--index-url", INDEX, "--notify", "${HOOK}")
    assert code == 0, err
    assert_clean(out, err)
    [wanted] = found
    assert_clean(wanted, wanted.command)
    assert wanted.planned.flags == (*FLAGS, "--notify", "${HOOK}")
    assert wanted.secrets == {
        "TFCOMPARE_NOTIFY": f"tgram://123456:Planted/987 {NOTIFY['slack']}", "TFCOMPARE_INDEX_URL": INDEX
    }  # fmt: skip


def test_a_served_night_gets_them_in_its_environment(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    program = ("/bin/sh", "-c", 'echo "$TFCOMPARE_NOTIFY"', "tfcompare")
    made = replace(wanted(program, history=str(tmp_path)), secrets={"TFCOMPARE_NOTIFY": "json://here"})
    assert "exit code 0" in serving._run_night(made, date(2026, 11, 4))
    assert (tmp_path / "log" / "nightly-2026-11-04.log").read_text() == "json://here\n"


OLD = ("--versions", "2.13", "--notify", NOTIFY["slack"], f"--notify={NOTIFY['telegram']}", "--index-url", INDEX)


@pytest.mark.parametrize("system", [True, False])
def test_an_old_timer_is_read_shown_without_its_tokens_and_removed(machine: Machine, call, system: bool):
    use(machine, "systemd")
    one = Systemd(system=system)
    one.install(wanted(flags=OLD))
    for place in one.render_files(wanted()):
        Path(place).chmod(0o644)
    streams = call("status")
    assert streams[0] == 0
    assert "--notify 'slack://…' '--notify=tgram://…' --index-url" in streams[1]
    assert_clean(*streams, *call("status", "--format", "json"), *call("uninstall"))
    assert machine.files() == []


def test_old_lines_of_a_crontab_are_read_shown_without_their_tokens_and_replaced(machine: Machine, call):
    use(machine, "cron")
    Cron().install(wanted(flags=OLD))
    assert WORD in machine.table.lower()
    assert_clean(*call("status"), *call("status", "--format", "json"))
    assert call("install", *FLAGS, "--yes")[0] == 0
    kept = [path for path in written(machine) if path.suffix == ".bak"]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]
    assert_clean(*(text for path, text in written(machine).items() if path not in kept))


def test_what_an_old_serve_says_of_itself_is_shown_without_its_tokens(machine: Machine, call):
    with lock.hold(name=SERVERS["cpu"], about=units.as_text(planned(flags=OLD))):
        assert_clean(*call("status"), *call("status", "--format", "json"))


@pytest.mark.parametrize("place", ["flag", "joined flag", "variable"])
def test_the_run_of_a_night_gets_the_index_by_its_environment(machine: Machine, call, monkeypatch, place: str):
    asked: list[NightOptions] = []

    def stop(options: NightOptions, say: Any) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(night, "run_night", stop)
    given = {"flag": ["--index-url", INDEX], "joined flag": [f"--index-url={INDEX}"], "variable": []}[place]
    if place == "variable":
        machine.set(TFCOMPARE_INDEX_URL=INDEX)
    code, out, err = call("run", "--versions", "2.13,2.0", *given, "--memory", "4g")
    assert code == 130
    [options] = asked
    assert options.flags == ("--memory", "4g")
    assert options.variables == {"TFCOMPARE_CONFIG": "", "TFCOMPARE_INDEX_URL": INDEX}
    assert_clean(out, err, options)


def test_a_night_refuses_a_login_in_what_it_would_hand_on(machine: Machine, call):
    code, out, err = call("run", "--versions", "2.13,2.0", "--base", "https://me:planted@registry.example.org/x")
    assert code == 2
    assert_clean(out, err)
    assert "must not contain a login" in err


def test_workers_get_the_variables_of_tensorflow_and_not_those_of_terraform(planted: Machine):
    found = worker_variables(own=find_of_tensorflow())
    assert_clean(found)
    assert {"TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "XLA_FLAGS"} <= found.keys()
    assert not [name for name in found if name.startswith(("TF_VAR", "TF_TOKEN", "TF_CLI", "TF_HTTP"))]


def test_a_recorded_command_line_holds_none(monkeypatch):
    words = ["nightly", "run", "--index-url", INDEX, "--base", "https://me:planted@registry.example.org/x"]
    words += [word for url in NOTIFY.values() for word in ("--notify", url, f"--notify={url}")]
    monkeypatch.setattr(sys, "argv", ["tfcompare", *words])
    kept = redact.redact_words(sys.argv[1:])
    assert_clean(kept, json.dumps(kept))
    assert len(kept) == len(words)
    assert redact.redact_words(("--notify", "${HOOK}", "--notify")) == ("--notify", "${HOOK}", "--notify")

"""What is downloaded, what forbids it, and how a failure is told; real downloads are in tests/engines."""

import json
import subprocess
from pathlib import Path

import pytest

from orchestrator.catalog.uv import find_uv
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import pythons
from orchestrator.engines.venv.pythons import OWN_LIST, OWN_LISTED, find_ban, find_uv_cause
from orchestrator.options import EngineOptions


def test_a_flag_or_a_variable_forbids_downloads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS", raising=False)
    assert find_ban(EngineOptions()) == ""
    assert find_ban(EngineOptions(python_downloads=False)) == "--no-python-downloads"
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "automatic")
    assert find_ban(EngineOptions()) == ""
    for value in ("never", "Never", "manual"):
        monkeypatch.setenv("UV_PYTHON_DOWNLOADS", value)
        assert find_ban(EngineOptions()) == f"UV_PYTHON_DOWNLOADS={value}"


UNREACHABLE = """$ uv python install 3.7
error: Failed to install cpython-3.7.9-linux-x86_64-gnu
  cause: Request failed after 3 retries in 7.8s
  cause: Failed to download `https://mirror.example/cpython-3.7.9.tar.zst`
  cause: error sending request for url (https://mirror.example/cpython-3.7.9.tar.zst)
  cause: client error (Connect)
  cause: {}"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (UNREACHABLE.format("Connection refused (os error 111)"), "Connection refused"),
        (
            UNREACHABLE.format("failed to lookup address information: Name or service not known"),
            "Name or service not known",
        ),
        (
            "  Caused by: HTTP status client error (404 Not Found) for url (https://mirror.example/x)",
            "HTTP status client error (404 Not Found)",
        ),
        (
            "  cause: Network connectivity is disabled, but the requested data wasn't found in the cache: https://a.b/c",
            "Network connectivity is disabled, but the requested data wasn't found in the cache",
        ),
        ("error: No download found for request: cpython-3.7-linux-ppc64-gnu", "there is no build for this machine"),
        ("error: failed to open file `/x`: No such file (os error 2)", "failed to open file `/x`: No such file"),
        ("", "uv failed without a message"),
    ],
)
def test_the_last_cause_is_the_reason_without_addresses(output: str, reason: str):
    assert find_uv_cause(output) == reason


def test_the_list_that_comes_with_tfcompare_is_one_that_uv_reads():
    entries = json.loads(OWN_LIST.read_text()).values()
    assert {f"{entry['major']}.{entry['minor']}" for entry in entries} == set(OWN_LISTED)
    assert all(len(entry["sha256"]) == 64 for entry in entries)
    uv = find_uv()
    assert uv is not None
    for number in OWN_LISTED:
        listed = subprocess.run(
            [uv, "python", "list", number, "--no-config", "--only-downloads", "--all-platforms", "--all-arches",
             "--python-downloads-json-url", OWN_LIST.as_uri()],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert f"cpython-{number}." in listed.stdout


class Uv:
    """Stands in for uv: keeps how it was called, and fails."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "uv"
        self.path.write_text(
            f'#!/bin/sh\necho "$@" >> {folder}/calls\nenv >> {folder}/calls\necho "cause: no"\nexit 1\n'
        )
        self.path.chmod(0o755)
        self._calls = folder / "calls"

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv:
    fake = Uv(tmp_path)
    monkeypatch.setattr(pythons, "find_uv", lambda: str(fake.path))
    monkeypatch.setattr(pythons.interpreters, "find_interpreter", lambda number: None)
    monkeypatch.setattr(pythons.interpreters, "forget_interpreters", lambda: None)
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS_JSON_URL", raising=False)
    return fake


def fail(downloads: pythons.Downloads, number: str, folder: Path) -> str:
    with pytest.raises(pythons.NotDownloaded) as failed:
        downloads.install(number, BuildLog(folder / "log"))
    return str(failed.value)


def test_only_variables_about_the_source_reach_uv(uv: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "https://mirror.example")
    for name in ("UV_PYTHON_INSTALL_DIR", "UV_CONFIG_FILE", "UV_PYTHON", "UV_PYTHON_CPYTHON_BUILD"):
        monkeypatch.setenv(name, "/elsewhere")
    options = EngineOptions(ca_bundle=tmp_path / "certificates.pem")
    assert fail(pythons.Downloads(options), "3.8", tmp_path) == "no"
    assert "UV_PYTHON_INSTALL_MIRROR=https://mirror.example" in uv.calls
    assert f"SSL_CERT_FILE={tmp_path}/certificates.pem" in uv.calls
    assert not [line for line in uv.calls if "/elsewhere" in line]
    folder = tmp_path / "cache" / "tfcompare" / "pythons"
    assert uv.calls[0].startswith(f"python install 3.8 --install-dir {folder} --no-bin --no-registry --no-config")


def test_the_own_list_is_for_what_uv_lacks_unless_the_user_has_one(uv: Uv, tmp_path: Path, monkeypatch):
    fail(pythons.Downloads(EngineOptions()), "3.8", tmp_path)
    assert OWN_LIST.as_uri() not in uv.calls[-1] + uv.calls[0]
    fail(pythons.Downloads(EngineOptions()), "3.7", tmp_path)
    [call] = [line for line in uv.calls if line.startswith("python install 3.7")]
    assert call.endswith(f"--python-downloads-json-url {OWN_LIST.as_uri()}")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", "file:///theirs.json")
    fail(pythons.Downloads(EngineOptions()), "3.7", tmp_path)
    assert not [line for line in uv.calls if line.startswith("python install 3.7")][1].endswith(".json")


def test_what_failed_is_not_tried_again_for_the_next_version(uv: Uv, tmp_path: Path):
    downloads = pythons.Downloads(EngineOptions())
    assert [fail(downloads, "3.7", tmp_path) for _ in range(2)] == ["no", "no"]
    assert len([line for line in uv.calls if line.startswith("python install")]) == 1


def test_a_folder_that_cannot_be_written_is_named(uv: Uv, tmp_path: Path):
    (tmp_path / "cache").write_text("a file")
    assert "pythons cannot be written: Not a directory" in fail(pythons.Downloads(EngineOptions()), "3.7", tmp_path)


def test_without_uv_that_is_the_reason(uv: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pythons, "find_uv", lambda: None)
    assert fail(pythons.Downloads(EngineOptions()), "3.7", tmp_path) == "uv is not installed"


def test_a_build_that_does_not_run_here_is_not_used(uv: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """uv is content with an archive that it could unpack."""
    uv.path.write_text("#!/bin/sh\nexit 0\n")
    broken = "; /cache/python3.7 cannot be used: libcrypt.so.1: cannot open shared object file"
    monkeypatch.setattr(pythons.interpreters, "describe_broken", lambda numbers: broken)
    reason = fail(pythons.Downloads(EngineOptions()), "3.7", tmp_path)
    assert reason == f"the build does not run on this machine{broken}"

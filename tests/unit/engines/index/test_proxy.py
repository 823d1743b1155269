"""The index on loopback passes on what it may, to nobody without a token, and with it no address and no password."""

import base64
import gzip
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from orchestrator.engines import build_errors
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.index.proxy import NAME, Index
from orchestrator.errors import UsageError
from tests.support.packages import LOGIN, PASSWORD, USER, Little, little_index, self_signed, wheel

BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, LOGIN, BASIC, LOGIN.partition(":")[2])


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "packages").mkdir()
    for number in ("1.0", "2.0"):
        wheel(tmp_path / "packages", "little_one", number)
    return tmp_path / "packages"


@pytest.fixture
def upstream(packages: Path) -> Iterator[Little]:
    with little_index(packages) as little:
        yield little


@pytest.fixture
def log(tmp_path: Path) -> BuildLog:
    return BuildLog(tmp_path / "build.log")


class Asking:
    """One who asks an index as a build does."""

    def __init__(self, index: Index, log: BuildLog) -> None:
        self.variables = index.variables(log)
        self.proxies = {"http": self.variables["HTTP_PROXY"], "https": self.variables["HTTPS_PROXY"]}

    def get(self, path: str, host: str = NAME) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"http://{host}{path}", proxies=self.proxies, timeout=20)


def made(index_url: str | None, wheelhouse: Path | None = None) -> Index:
    return Index(index_url, wheelhouse, None)


def test_without_an_index_or_a_wheelhouse_nothing_is_changed(log: BuildLog):
    assert made(None).variables(log) == {}


def test_pages_and_files_come_through_with_the_password_added_on_the_way(
    upstream: Little, packages: Path, log: BuildLog
):
    index = made(upstream.url)
    asking = Asking(index, log)
    shown = asking.get("/simple/Little_One/")
    files = [line for line in shown.text.splitlines() if "href" in line]
    assert ["little_one-1.0-py3-none-any.whl" in files[0], len(files)] == [True, 2]
    got = asking.get(files[0].partition('href="')[2].partition('"')[0])
    assert got.content == (packages / "little_one-1.0-py3-none-any.whl").read_bytes()
    assert upstream.asked == [
        ("/simple/little-one/", True),
        ("/files/little_one-1.0-py3-none-any.whl", True),
    ]
    told = shown.text + str(shown.headers) + str(got.headers) + str(asking.variables)
    assert not [secret for secret in (*SECRETS, str(upstream.port)) if secret in told]
    assert not log.used
    index.close()


def test_nobody_without_a_builds_own_token_is_served(upstream: Little, log: BuildLog):
    index = made(upstream.url)
    asking = Asking(index, log)
    port = asking.proxies["http"].rpartition(":")[2]
    for login in ("", "build:wrong@", "build@"):
        asking.proxies["http"] = f"http://{login}127.0.0.1:{port}"
        assert asking.get("/simple/little-one/").status_code == 407
    assert upstream.asked == []
    index.close()


def test_every_build_has_a_token_of_its_own_and_one_server_serves_all(upstream: Little, log: BuildLog, tmp_path: Path):
    index = made(upstream.url)
    first, second = index.variables(log), index.variables(BuildLog(tmp_path / "other.log"))
    assert first["HTTP_PROXY"] != second["HTTP_PROXY"]
    assert first["HTTP_PROXY"].rpartition("@")[2] == second["HTTP_PROXY"].rpartition("@")[2]
    index.close()


def test_it_is_no_way_to_anywhere_else(upstream: Little, log: BuildLog):
    index = made(upstream.url)
    asking = Asking(index, log)
    assert asking.get("/simple/little-one/", host=f"127.0.0.1:{upstream.port}").status_code == 403
    with socket.create_connection(("127.0.0.1", int(asking.proxies["http"].rpartition(":")[2])), timeout=20) as raw:
        token = base64.b64encode(asking.proxies["http"].partition("//")[2].rpartition("@")[0].encode()).decode()
        raw.sendall(f"CONNECT other.example:443 HTTP/1.1\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode())
        assert b" 403 " in raw.recv(1000)
    assert asking.get("/elsewhere").status_code == 404
    assert asking.get("/file/0123/unheard-of.whl").status_code == 404
    assert upstream.asked == []
    assert log.end.splitlines() == ["index: 127.0.0.1 is not served here", "index: other.example is not served here"]
    index.close()


def test_a_project_that_the_index_does_not_know_is_none(upstream: Little, log: BuildLog):
    index = made(upstream.url)
    assert Asking(index, log).get("/simple/nothing/").status_code == 404
    assert not log.used
    index.close()


@pytest.mark.parametrize(
    ("login", "status", "told"),
    [("", 0, "127.0.0.1 answered 401"), (LOGIN + "@", 404, ""), (LOGIN + "@", 451, "127.0.0.1 answered 451")],
)
def test_what_the_index_answers_is_told_in_the_log_by_its_host(
    upstream: Little, log: BuildLog, login: str, status: int, told: str
):
    upstream.status = status
    index = made(f"http://{login}127.0.0.1:{upstream.port}/simple")
    assert Asking(index, log).get("/simple/little-one/").status_code == 404
    assert log.end.startswith(f"index: {told}" if told else "")
    assert not [secret for secret in SECRETS if secret in log.end]
    index.close()


def test_an_index_that_is_not_there_is_told_in_the_log_with_the_reason(log: BuildLog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    index = made(f"http://{LOGIN}@127.0.0.1:{port}/simple")
    assert Asking(index, log).get("/simple/six/").status_code == 404
    assert log.end.startswith("index: 127.0.0.1 was not reached: ")
    assert "Connection refused" in log.end
    assert not [secret for secret in SECRETS if secret in log.end]
    index.close()


def test_a_certificate_that_is_not_trusted_is_told_and_trusted_once_its_bundle_is_named(
    packages: Path, log: BuildLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The bundle that was named goes before what the surroundings say."""
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    tls = self_signed(tmp_path, "127.0.0.1")
    with little_index(packages, tls) as little:
        url = little.url.replace("http:", "https:")
        for bundle, status in ((None, 404), (tls[0], 200)):
            index = Index(url, None, bundle)
            assert Asking(index, log).get("/simple/little-one/").status_code == status
            index.close()
    assert log.end.startswith("index: 127.0.0.1 was not reached: ")
    found = build_errors.of_install(log.end, folder=tmp_path)
    assert found is not None
    assert (found.kind, "--ca-bundle" in found.advice) == ("index-certificate", True)


def test_a_file_that_breaks_off_is_told_in_the_log_and_not_passed_for_a_whole_one(upstream: Little, log: BuildLog):
    upstream.halves = True
    index = made(upstream.url)
    asking = Asking(index, log)
    place = asking.get("/simple/little-one/").text.partition('href="')[2].partition('"')[0]
    with pytest.raises(requests.RequestException):
        asking.get(place)
    assert log.end.startswith("index: the connection to 127.0.0.1 broke: ")
    index.close()


def test_a_wheelhouse_is_an_index_of_its_files_and_asks_nobody(packages: Path, log: BuildLog):
    (packages / "README.txt").write_text("not a package")
    index = made(None, packages)
    asking = Asking(index, log)
    shown = asking.get("/simple/little-one/").text
    place = shown.partition('href="')[2].partition('"')[0]
    assert shown.count("<a ") == 2
    assert asking.get(place).content == (packages / "little_one-1.0-py3-none-any.whl").read_bytes()
    assert asking.get("/simple/readme/").status_code == 404
    assert index.wheelhouse == packages
    index.close()


def test_a_wheelhouse_goes_before_the_index_file_by_file(upstream: Little, tmp_path: Path, log: BuildLog):
    house = tmp_path / "house"
    house.mkdir()
    (house / "little_one-2.0-py3-none-any.whl").write_bytes(b"ours")
    index = made(upstream.url, house)
    asking = Asking(index, log)
    lines = [line for line in asking.get("/simple/little-one/").text.splitlines() if "href" in line]
    got = {line.partition('">')[2].partition("<")[0]: asking.get(line.split('"')[1]).content for line in lines}
    assert got.pop("little_one-2.0-py3-none-any.whl") == b"ours"
    assert list(got) == ["little_one-1.0-py3-none-any.whl"]
    assert index.wheelhouse is None, "it is not the one place that packages come from"
    index.close()


def test_a_wheelhouse_serves_on_where_the_index_does_not_answer(upstream: Little, packages: Path, log: BuildLog):
    upstream.status = 451
    index = made(upstream.url, packages)
    assert Asking(index, log).get("/simple/little-one/").status_code == 200
    index.close()


def test_real_pip_installs_through_it_and_prints_no_secret(upstream: Little, log: BuildLog, tmp_path: Path):
    index = made(upstream.url)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "-vvv",
            "download",
            "--no-deps",
            "--dest",
            str(tmp_path / "got"),
            "little-one==1.0",
        ],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **index.variables(log)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "got").iterdir()] == ["little_one-1.0-py3-none-any.whl"]
    assert not [secret for secret in SECRETS if secret in done.stdout + done.stderr]
    index.close()


@pytest.mark.parametrize(
    "url",
    ["mirror.example/simple", "file:///simple", "https://", "https://a:b@:443/simple", "http://secret@host:port/x"],
)
def test_what_is_no_address_of_an_index_is_refused_without_repeating_it(url: str):
    with pytest.raises(UsageError, match=r"^--index-url: give an address like https://HOST/simple") as refused:
        made(url)
    assert "secret" not in str(refused.value)


def test_a_wheelhouse_that_is_none_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"--wheelhouse .*nowhere: there is no such folder"):
        made(None, tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"there is no package in it; docs/images\.md"):
        made(None, tmp_path)


def test_a_list_without_end_is_not_read(log: BuildLog):
    """As a few bytes that unpack to a hundred megabytes."""
    body = gzip.compress(b"<a href='x-1.0.tar.gz'>x</a>" * 4 * 2**20)
    assert len(body) < 2**20

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        index = made(f"http://127.0.0.1:{server.server_port}/simple")
        assert Asking(index, log).get("/simple/x/").status_code == 404
        index.close()
        server.shutdown()
        thread.join()
    assert "127.0.0.1 sent a list of more than 32 MiB" in log.path.read_text()

"""An engine that maps users, or is not Docker's, is tried: what a container has there decides, and no name."""

import io
import os
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from orchestrator.engines.docker import engine, probe, security
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EngineUnavailable
from orchestrator.options import EngineOptions
from tests.unit.engines.docker.scenes import Client, make

pytestmark = pytest.mark.usefixtures("outside")

UID = security.find_user()[0]
STATUS = f"Name:\tcat\nUid:\t{UID}\t{UID}\t{UID}\t{UID}\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
STATUS += "NoNewPrivs:\t1\nSeccomp:\t2\n"
NETWORK = "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo:       0       0    0\n"
GOOD = {"code": 0, "output": probe.PRIVATE, "status": STATUS, "network": NETWORK, "memory": f"{probe.MEMORY}\n"}


class Engine(Client):
    """An engine whose container leaves behind what is given for the way in which it maps users."""

    def __init__(self, *listed: str, name: str = "Engine", **by_mode: Mapping[str, Any]) -> None:
        super().__init__(*listed, name=name)
        self._info |= {"Name": "here", "DockerRootDir": f"/{name}/{id(self)}"}
        self._by_mode = by_mode
        self.tried: list[str] = []
        self.images = self.removed = 0

    def import_image_from_data(self, data: bytes) -> str:
        self.images += 1
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            assert all(member.issym() for member in tar)
        return '{"status": "sha256:probe"}'

    def remove_image(self, image: str, force: bool) -> None:
        self.images -= 1

    def info(self) -> dict[str, Any]:
        # As Podman answers.
        self._info["ID"] = str(uuid.uuid4())
        return self._info

    @property
    def _now(self) -> Mapping[str, Any]:
        return {**GOOD, **self._by_mode[self.made["host_config"].get("UsernsMode", "usual").replace("-", "_")]}

    def create_container(self, **options: Any) -> dict[str, Any]:
        super().create_container(**options)
        return {"Id": "c" * 64, "Warnings": self._now.get("warnings")}

    def start(self, container: str) -> None:
        config = self.made["host_config"]
        self.tried.append(config.get("UsernsMode", ""))
        assert (config["network_mode"], config["cap_drop"], config["read_only"]) == ("none", ["ALL"], True)
        assert self.made["user"] == ":".join(map(str, security.find_user()))
        writable = [mount for mount in config["mounts"] if not mount["ReadOnly"]]
        assert [mount["Target"] for mount in writable] == ["/tfcompare/probe/out"]
        out = Path(writable[0]["Source"])
        for name in ("status", "network", "memory"):
            if self._now[name] is not None:
                (out / name).write_text(self._now[name])
                if os.getuid() == 0:
                    os.chown(out / name, self._now.get("owner", UID), 0)

    def wait(self, container: str, timeout: float) -> dict[str, int]:
        if self._now["code"] is None:
            raise requests.exceptions.ReadTimeout
        return {"StatusCode": self._now["code"]}

    def logs(self, container: str, **options: Any) -> bytes:
        return bytes(self._now["output"], "utf-8")

    def remove_container(self, container: str, **options: Any) -> None:
        self.removed += 1


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(security, "_modes", {})
    yield tmp_path
    # Whatever was found, nothing is left here.
    assert list(tmp_path.rglob("probe-*")) == []


def check(client: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(engine, "connect_engine", lambda: client)
    return DockerEngine(EngineOptions()).check()


DENIED = {"code": 1, "output": "cat: /tfcompare/probe/in/secret: Permission denied\n"}
KINDS = {
    "rootless": (("name=rootless",), "Engine", ("usual",), "a rootless Docker engine"),
    "userns-remap": (("name=userns",), "Engine", ("usual", "host"), r"a Docker engine that maps users \(userns-remap"),
    "Podman": ((), "Podman Engine", ("usual", "keep_id"), "Podman"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_on_which_no_worker_can_write_is_refused_by_what_was_found(kind: str, monkeypatch):
    listed, name, modes, words = KINDS[kind]
    client = Engine(*listed, name=name, **dict.fromkeys(modes, DENIED))
    denied = rf"user {UID} in it cannot read or write.*Permission denied"
    message = rf"^this is {words}.*failed there: {denied}\); use another Docker"
    with pytest.raises(EngineUnavailable, match=message):
        check(client, monkeypatch)
    assert (len(client.tried), client.removed, client.images) == (len(modes), len(modes), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_on_which_it_works_is_taken_whatever_it_is(kind: str, monkeypatch, tmp_path: Path):
    listed, name, modes, _ = KINDS[kind]
    client = Engine(*listed, name=name, **{mode: {} for mode in modes})
    assert check(client, monkeypatch) == f"{'Podman' if kind == 'Podman' else 'Docker'} 28.0 on Debian"
    assert client.tried == [""]
    assert "UsernsMode" not in make(client, tmp_path)["host_config"]


@pytest.mark.parametrize(("kind", "mode"), [("userns-remap", "host"), ("Podman", "keep-id")])
def test_the_way_of_mapping_users_that_works_is_that_of_workers(kind: str, mode: str, monkeypatch, tmp_path: Path):
    listed, name, _, _ = KINDS[kind]
    client = Engine(*listed, name=name, usual=DENIED, **{mode.replace("-", "_"): {}})
    assert check(client, monkeypatch).endswith(" 28.0 on Debian")
    assert client.tried == ["", mode]
    assert make(client, tmp_path)["host_config"]["UsernsMode"] == mode
    # Another engine has its own way.
    assert "UsernsMode" not in make(Client(), tmp_path)["host_config"]


def test_a_usual_engine_is_not_tried(monkeypatch):
    client = Engine(usual=DENIED)
    assert check(client, monkeypatch) == "Docker 28.0 on Debian"
    assert client.tried == []


ZEROS = "0000000000000000"
FAULTS = {
    "another user": ({"status": STATUS.replace(str(UID), "0")}, "it was asked for user"),
    "capabilities": ({"status": STATUS.replace(f"CapEff:\t{ZEROS}", "CapEff:\t00000000a80425fb")}, "it keeps capabil"),
    "capabilities to take": ({"status": STATUS.replace(f"CapPrm:\t{ZEROS}", "CapPrm:\t1")}, "it keeps capabilities"),
    "no status": ({"status": "Uid: x\n"}, "it was asked for user"),
    "privileges": ({"status": STATUS.replace("Privs:\t1", "Privs:\t0")}, "it may gain privileges"),
    "no filter": ({"status": STATUS.replace("Seccomp:\t2", "Seccomp:\t0")}, "no seccomp filter"),
    "a network": ({"network": NETWORK + "  eth0:  1  2\n"}, r"it has a network \(eth0\)"),
    "no limit of memory": ({"memory": "max\n"}, r"its memory is not limited as asked \(max\)"),
    "a limit that was dropped": ({"warnings": ["Memory limit: Limitation discarded."]}, "Limitation discarded"),
    "nothing written": ({"status": None}, "status: No such file"),
    "too much written": ({"status": "x" * 2**17}, "it has more than"),
    "no answer": ({"code": None}, "it did not end within 60 s"),
    "another secret": ({"output": "nothing"}, r"cannot read or write .* \(nothing\)"),
}


@pytest.mark.parametrize(("found", "words"), FAULTS.values(), ids=FAULTS)
def test_a_container_that_is_not_confined_as_asked_is_a_finding(monkeypatch, found: dict[str, Any], words: str):
    client = Engine("name=rootless", usual={**found})
    with pytest.raises(EngineUnavailable, match=f"a test container failed there: .*{words}"):
        check(client, monkeypatch)
    assert client.images == 0


@pytest.mark.skipif(os.getuid() != 0, reason="not root: it gives files away")
def test_what_belongs_to_another_user_afterwards_is_a_finding(monkeypatch):
    client = Engine("name=rootless", usual={"owner": 165532})
    with pytest.raises(
        EngineUnavailable, match=f"files that user {UID} writes in it belong to user 165532 on this machine"
    ):
        check(client, monkeypatch)


@pytest.mark.parametrize(("name", "what"), [("MemoryLimit", "memory"), ("PidsLimit", "number of processes")])
def test_an_engine_that_says_that_it_limits_nothing_is_not_tried(monkeypatch, name: str, what: str):
    client = Engine("name=rootless", usual={})
    client.info()[name] = False
    with pytest.raises(EngineUnavailable, match=f"the engine does not limit the {what} of a container"):
        check(client, monkeypatch)
    assert client.tried == []


def test_where_memory_cannot_be_seen_inside_it_is_as_the_engine_says(monkeypatch):
    assert check(Engine("name=rootless", usual={"memory": None}), monkeypatch) == "Docker 28.0 on Debian"
    assert check(Engine("name=rootless", usual={"memory": ""}), monkeypatch) == "Docker 28.0 on Debian"

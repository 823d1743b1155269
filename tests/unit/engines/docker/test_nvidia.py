"""What an engine is asked for, and what it is told to be missing, from what engines say of themselves."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.engines.docker import nvidia
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import Gpu

FIRST = Gpu(0, "GPU-4d6a", "NVIDIA A100", "8.0", "550.54", 81_920, 400, True, False)
SECOND = replace(FIRST, index=1, uuid="GPU-9f31")
OLD = {"ServerVersion": "20.10.24", "Runtimes": {"runc": {}}}
# As engines answer from 25 and from 28.2 on.
SWITCHED_OFF = {**OLD, "ServerVersion": "25.0.3", "CDISpecDirs": []}
WITHOUT_LIST = {**OLD, "ServerVersion": "27.3.1", "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"]}


def listing(*names: str, source: str = "cdi") -> dict:
    found = [{"Source": source, "ID": name} for name in names]
    return {**WITHOUT_LIST, "ServerVersion": "28.3.0", "DiscoveredDevices": found}


BY_INDEX = listing("nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all")
BY_BOTH = listing("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-4d6a", "nvidia.com/gpu=1", "nvidia.com/gpu=all")


def requested(request: str, *devices: str) -> dict:
    [only] = nvidia.options(request, devices)["device_requests"]
    return only


def test_the_runtime_reads_its_cards_from_a_variable():
    assert nvidia.options("runtime", ("GPU-4d6a",))["runtime"] == "nvidia"


@pytest.mark.parametrize("request_", [None, "runtime", "device", "cdi"])
def test_a_runtime_that_the_user_names_is_asked_for_whatever_gives_the_gpu(request_: nvidia.GpuRequest | None):
    assert nvidia.options(request_, (), "runsc")["runtime"] == "runsc"
    assert nvidia.options(request_).get("runtime") == ("nvidia" if request_ == "runtime" else None)
    variables = {
        "NVIDIA_VISIBLE_DEVICES": "GPU-4d6a,GPU-9f31",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_DISABLE_REQUIRE": "1",
    }
    assert nvidia.variables("runtime", ("GPU-4d6a", "GPU-9f31")) == variables
    assert nvidia.variables("runtime")["NVIDIA_VISIBLE_DEVICES"] == "all"


def test_a_device_is_requested_by_uuid_and_all_by_their_number():
    one = requested("device", "GPU-4d6a")
    assert (one["DeviceIDs"], one["Count"], one["Capabilities"]) == (["GPU-4d6a"], 0, [["gpu"]])
    every = requested("device")
    assert (every["DeviceIDs"], every["Count"]) == ([], -1)
    assert nvidia.variables("device", ("GPU-4d6a",))["NVIDIA_VISIBLE_DEVICES"] == "GPU-4d6a"


def test_cdi_is_a_driver_of_its_own_and_keeps_the_runtime_out():
    one = requested("cdi", "nvidia.com/gpu=0")
    assert (one["Driver"], one["DeviceIDs"], one["Count"]) == ("cdi", ["nvidia.com/gpu=0"], 0)
    assert requested("cdi")["DeviceIDs"] == ["nvidia.com/gpu=all"]
    assert nvidia.variables("cdi", ("nvidia.com/gpu=0",))["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_without_a_gpu_nothing_is_asked():
    assert (nvidia.options(None), nvidia.variables(None)) == ({}, {})


@pytest.mark.parametrize("request_", ["runtime", "device"])
def test_a_card_goes_by_its_uuid_or_else_its_number(request_: str):
    assert nvidia.name_devices(request_, (FIRST, replace(SECOND, uuid=None)), OLD) == ("GPU-4d6a", "1")


def test_cdi_goes_by_the_uuid_where_the_engine_lists_it():
    assert nvidia.name_devices("cdi", (FIRST, SECOND), BY_BOTH) == ("nvidia.com/gpu=GPU-4d6a", "nvidia.com/gpu=1")
    assert nvidia.name_devices("cdi", (FIRST, SECOND), BY_INDEX) == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
    assert nvidia.name_devices("cdi", (SECOND,), WITHOUT_LIST) == ("nvidia.com/gpu=1",)
    assert nvidia.name_devices("cdi", (), WITHOUT_LIST) == ()


def test_a_card_that_cdi_does_not_list_is_named_with_those_that_it_does():
    with pytest.raises(
        EngineUnavailable, match=r"no device nvidia.com/gpu=1 for GPU 1 \(NVIDIA A100\); it knows nvidia"
    ):
        nvidia.choose_devices("cdi", (SECOND,), listing("nvidia.com/gpu=0"))


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (OLD, ("version 20.10.24 has no CDI", "Docker 25", "daemon.json")),
        (SWITCHED_OFF, ("version 25.0.3", "switched off")),
        (listing(), ("finds no nvidia.com/gpu in /etc/cdi, /var/run/cdi", "nvidia-ctk cdi generate")),
        (listing("vendor.com/device=0"), ("finds no nvidia.com/gpu",)),
        (listing("nvidia.com/gpu=0", source="else"), ("finds no nvidia.com/gpu",)),
    ],
)
def test_an_engine_without_cdi_is_refused_with_what_it_lacks(info: dict, words: tuple[str, ...]):
    with pytest.raises(EngineUnavailable) as refused:
        nvidia.choose_devices("cdi", (), info)
    for word in ("--gpu: this Docker engine cannot hand out a GPU by CDI", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize("info", [WITHOUT_LIST, BY_INDEX, BY_BOTH])
def test_an_engine_with_cdi_is_accepted(info: dict):
    assert len(nvidia.choose_devices("cdi", (FIRST, SECOND), info)) == 2


def test_an_engine_without_the_runtime_is_refused_and_one_with_it_is_taken():
    with pytest.raises(EngineUnavailable, match="no runtime named nvidia"):
        nvidia.choose_devices("runtime", (FIRST,), OLD)
    nvidia.choose_devices("runtime", (FIRST,), {**OLD, "Runtimes": {"nvidia": {}}})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path))
    return tmp_path / "tfcompare" / "jit"


IMAGE = "sha256:0123456789abcdef"


def test_code_is_kept_by_image_and_compute_capability(cache: Path):
    """Whichever of the eight GPUs of a machine a run gets, the driver makes its code once."""
    assert nvidia.jit_folder(IMAGE, (FIRST,)) == cache / "0123456789ab-sm80"
    h100, unknown = replace(SECOND, capability="9.0"), replace(SECOND, capability=None)
    names = [nvidia.jit_folder(IMAGE, cards).name for cards in ((SECOND, FIRST), (h100, FIRST), (unknown,), ())]
    assert names == [f"0123456789ab-{key}" for key in ("sm80", "sm80-sm90", "smany", "any")]
    assert nvidia.jit_folder("sha256:fedcba", (FIRST,)).is_dir()


def test_several_cards_have_room_to_talk_and_one_does_not_need_it():
    assert nvidia.options("runtime", ("a", "b"))["shm_size"] == 2**30
    assert "shm_size" not in nvidia.options("runtime", ("a",))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make device files")
def test_a_container_is_in_the_group_that_may_open_the_device_files(tmp_path: Path):
    for name, mode in (("nvidia0", 0o660), ("nvidiactl", 0o666), ("null", 0o660)):
        os.mknod(tmp_path / name, stat.S_IFCHR, os.makedev(1, 3))
        (tmp_path / name).chmod(mode)
        os.chown(tmp_path / name, 0, 4000 + mode)
    (tmp_path / "nvidia-modeset").write_text("no device")
    assert nvidia.find_groups(tmp_path) == [4000 + 0o660]
    assert nvidia.find_groups(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Using requested mode 'cdi'\ninvoking the NVIDIA Container Runtime Hook directly", "--gpu-request cdi"),
        ("unresolvable CDI devices nvidia.com/gpu=0", "nvidia-ctk cdi generate"),
        ("nvml error: driver/library version mismatch", "restart the machine"),
        ("could not select device driver", "Install the NVIDIA Container Toolkit"),
    ],
)
def test_a_refusal_comes_with_what_to_do_about_it(said: str, advice: str):
    assert advice in nvidia.advise_on_refusal(said)


def test_what_is_kept_is_told_with_its_image_and_its_size(cache: Path):
    assert list(nvidia.jit_kept()) == []
    folder = nvidia.jit_folder(IMAGE, (FIRST,))
    (folder / "1" / "a").mkdir(parents=True)
    (folder / "1" / "a" / "code").write_bytes(b"x" * 1000)
    assert list(nvidia.jit_kept()) == [nvidia.CompiledCode(folder, "0123456789ab", 1000)]


def test_a_cache_that_cannot_be_written_says_which(cache: Path):
    cache.parent.mkdir(parents=True)
    cache.write_text("in the way")
    with pytest.raises(EnvironmentFailed, match=r"cannot write .*jit.*TFCOMPARE_CACHE"):
        nvidia.jit_folder(IMAGE, (FIRST,))


def test_the_toolkit_is_recorded_as_far_as_it_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = tmp_path / "config.toml"
    assert nvidia.describe_toolkit(config) == {}
    config.write_text('[nvidia-container-runtime]\nmode = "cdi"\n')
    program = tmp_path / "nvidia-ctk"
    program.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.18.1'\necho 'commit: 1'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert nvidia.describe_toolkit(config) == {"toolkit": "1.18.1", "toolkit_mode": "cdi"}
    config.write_text("mode = ")
    assert nvidia.describe_toolkit(config) == {"toolkit": "1.18.1"}

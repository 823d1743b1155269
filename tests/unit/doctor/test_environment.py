"""What can run here, told from hand-made setups: findings, advice, and which versions cannot run."""

from dataclasses import replace

import pytest

from orchestrator.catalog.gpu_support import Match
from orchestrator.doctor import DoctorFinding
from orchestrator.doctor.environment import CPU_GB, EngineOutlook, Setup, list_setup_findings, setup_as_object
from orchestrator.engines import Outlook
from orchestrator.errors import EngineUnavailable
from orchestrator.machine.gpu import ComputeMode, Gpu

H100 = Gpu(
    index=0, uuid="GPU-1", name="H100", capability="9.0", driver="550.54", memory_mb=80_000, power_limit_w=700,
    persistence=True, mig=False,
)  # fmt: skip
READY = EngineOutlook("1.14.0", "docker", Outlook("ready", "ready (tfcompare:1.14.0-cpu-0123)"))
INSTALLED = EngineOutlook("1.14.0", "venv", Outlook("to build", "to be installed (Python 3.7.16)"))
WITHOUT = EngineOutlook("2.0.0", "venv", Outlook("impossible", "it needs Python 3.7 or 3.6, and none was found"))

HERE = Setup(
    versions=("1.14.0", "2.0.0"),
    gpu=False,
    engine="Docker 20.10 on Debian",
    unavailable=None,
    ways=(READY, INSTALLED, WITHOUT),
    gpus=(),
    matches=(),
    disks=(("environments", 40.0),),
)


def found(setup: Setup, subject: str) -> DoctorFinding:
    [one] = [finding for finding in list_setup_findings(setup) if finding.subject == subject]
    return one


def test_a_version_is_fine_where_one_engine_has_it_ready():
    assert found(HERE, "1.14.0").level == "fine"
    assert "docker: ready" in found(HERE, "1.14.0").seen


def test_the_engine_that_is_taken_instead_of_the_first_is_named():
    docker = EngineOutlook("1.14.0", "docker", Outlook("impossible", "its base is not here"))
    venv = EngineOutlook("1.14.0", "venv", Outlook("ready", "ready (Python 3.7.16)"))
    shown = found(replace(HERE, ways=(docker, venv)), "1.14.0")
    assert shown.level == "fine"
    assert shown.seen.endswith("venv: ready (Python 3.7.16); virtual environments are used instead")
    assert "are used instead" not in found(replace(HERE, ways=(READY, venv)), "1.14.0").seen


def test_the_words_of_a_registry_are_shown_once_and_not_where_a_version_is_ready():
    missing = Outlook("impossible", "its base python:3.11 is not here", detail="dial tcp: i/o timeout")
    ready = Outlook("ready", "ready (Python 3.11.7)")
    ways = [EngineOutlook(number, "docker", missing) for number in ("2.18.1", "2.20.0", "2.21.0")]
    setup = replace(HERE, versions=("2.18.1", "2.20.0", "2.21.0"), ways=(*ways, EngineOutlook("2.18.1", "venv", ready)))
    assert [found(setup, number).seen for number in setup.versions] == [
        "docker: its base python:3.11 is not here; venv: ready (Python 3.11.7); virtual environments are used instead",
        "docker: its base python:3.11 is not here (dial tcp: i/o timeout)",
        "docker: its base python:3.11 is not here",
    ]


def test_a_version_that_has_to_be_made_first_is_a_note():
    assert found(replace(HERE, ways=(INSTALLED,)), "1.14.0").level == "note"


def test_a_version_that_no_engine_can_make_is_a_problem_and_named():
    assert found(HERE, "2.0.0").level == "problem"
    assert "needs Python 3.7" in found(HERE, "2.0.0").seen
    assert HERE.unable == ("2.0.0",)


def test_without_docker_virtual_environments_are_taken_and_it_is_said_why():
    alone = replace(
        HERE,
        engine="",
        unavailable=EngineUnavailable("no Docker engine answers (its socket does not exist)", "start it"),
        ways=(INSTALLED,),
    )
    assert found(alone, "engine").level == "note"
    assert "its socket does not exist" in found(alone, "engine").seen
    assert replace(alone, versions=("1.14.0",)).unable == ()


def test_a_gpu_without_docker_leaves_the_versions_whose_libraries_are_packages():
    without = EngineOutlook(
        "2.0.0", "venv", Outlook("impossible", "its CUDA comes with an image", advice="take 2.5 and newer")
    )
    alone = replace(
        HERE,
        gpu=True,
        engine="",
        unavailable=EngineUnavailable("no Docker engine answers", "start it"),
        ways=(INSTALLED, without),
        gpus=(H100,),
    )
    assert found(alone, "engine").level == "note"
    assert alone.unable == ("2.0.0",)
    assert found(alone, "2.0.0").advice == "take 2.5 and newer"


def test_a_gpu_that_nobody_sees_is_a_problem_only_where_it_is_asked_for():
    assert not [finding for finding in list_setup_findings(HERE) if finding.subject == "GPU"]
    assert found(replace(HERE, gpu=True), "GPU").level == "problem"
    assert replace(HERE, gpu=True).unable == HERE.versions


@pytest.mark.parametrize(("gpu", "level"), [(True, "problem"), (False, "note")])
def test_a_version_that_its_card_does_not_fit_names_another(gpu: bool, level: str):
    match = Match("1.14.0", "H100 0", "unsupported", "known to fail", "the nearest that runs on it is 2.16.2")
    seen = replace(HERE, gpu=gpu, gpus=(H100,), matches=(match,))
    assert found(seen, "1.14.0 on GPU") == DoctorFinding(
        "1.14.0 on GPU", level, "H100 0: known to fail", "the nearest that runs on it is 2.16.2"
    )
    assert ("1.14.0" in seen.unable) == gpu


def test_a_card_tells_what_it_can_compute():
    assert "compute capability 9.0" in found(replace(HERE, gpus=(H100,)), "GPU 0").seen


@pytest.mark.parametrize(
    ("mode", "level", "starts"),
    [
        ("exclusive", "note", "measure with --gpu-exclusive, or allow several"),
        ("prohibited", "problem", "allow several"),
    ],
)
def test_a_card_that_takes_few_processes_names_what_helps(mode: ComputeMode, level: str, starts: str):
    [_, finding] = [
        finding
        for finding in list_setup_findings(replace(HERE, gpus=(replace(H100, mode=mode),)))
        if finding.subject == "GPU 0"
    ]
    assert finding.level == level
    assert finding.advice.startswith(f"{starts} processes with `sudo nvidia-smi")


@pytest.mark.parametrize(("free", "level"), [(CPU_GB / 2, "problem"), (CPU_GB * 2, "fine")])
def test_disk_is_weighed_against_what_is_not_ready_yet(free: float, level: str):
    assert found(replace(HERE, disks=(("environments", free),)), "disk").level == level


def test_the_object_says_of_each_version_whether_it_can_run():
    versions = setup_as_object(HERE)["versions"]
    assert [(one["version"], one["can_run"]) for one in versions] == [("1.14.0", True), ("2.0.0", False)]
    assert [way["engine"] for way in versions[0]["ways"]] == ["docker", "venv"]

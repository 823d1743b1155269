"""Which GPUs a run takes, and what it refuses to measure on them."""

import re
from dataclasses import replace

import pytest

from orchestrator import catalog
from orchestrator.catalog import claims, workloads
from orchestrator.catalog.gpu_support import GpuSupport
from orchestrator.errors import UsageError
from orchestrator.machine.gpu import Gpu, GpuReading
from orchestrator.options import EngineOptions
from orchestrator.plan import gpus as cards
from orchestrator.plan.gpus import NOT_SEEN, NOT_WATCHED, adapt_claims, choose_gpus, find_gpus_again, fit
from orchestrator.plan.request import RunOptions, check_request

V100 = Gpu(0, "GPU-4d6a-11", "Tesla V100", "7.0", "550.54", 16_384, 300, True, None)
A100 = Gpu(1, "GPU-4d6a-22", "NVIDIA A100", "8.0", "550.54", 81_920, 400, True, False)
H100 = Gpu(2, "GPU-9f31-33", "NVIDIA H100", "9.0", "550.54", 81_920, 700, True, False)
ALL = (V100, A100, H100)
READING = GpuReading(0, 1980, 3201, 41, 122, 35, (), ())


def test_a_run_has_one_card_unless_it_asks_for_more():
    assert choose_gpus((), ALL) == (V100,)
    assert choose_gpus(("1",), ALL) == (A100,)
    assert choose_gpus(("2", "0"), ALL) == (H100, V100)
    assert choose_gpus((), ()) == ()


def test_a_card_goes_by_its_uuid_too_and_by_the_beginning_of_it():
    assert choose_gpus(("GPU-9f31-33",), ALL) == (H100,)
    assert choose_gpus(("GPU-9f",), ALL) == (H100,)


@pytest.mark.parametrize(
    ("names", "seen", "said"),
    [
        (("3",), ALL, "3 is not a GPU of this machine; there are 0: Tesla V100 GPU-4d6a-11; 1: NVIDIA A100"),
        (("GPU-4d6a",), ALL, "GPU-4d6a matches several GPUs"),
        (("G",), ALL, "G is not a GPU"),
        (("0", "GPU-4d6a-11"), ALL, "one GPU is named twice"),
        (("0",), (), "neither NVML nor nvidia-smi shows a GPU"),
    ],
)
def test_a_card_that_is_not_there_is_refused_with_those_that_are(names, seen, said: str):
    with pytest.raises(UsageError) as refused:
        choose_gpus(names, seen)
    assert said in str(refused.value)


def fitted(*names: str, seen=ALL, read=(READING,), gpus: tuple[str, ...] = (), force: bool = False, **changes):
    places = EngineOptions(gpu=True, gpus=gpus, force=force)
    options = replace(RunOptions(versions=names, suite="smoke", environments=places), **changes)
    return fit(check_request(options), lambda: seen, lambda: read)


def test_cards_that_were_chosen_are_in_the_plan_and_in_what_the_engine_gets():
    asked = fitted("1.14", "2.0", gpus=("GPU-4d6a-11",))
    assert asked.freeze("docker").gpus == asked.options.environments.gpus == ("GPU-4d6a-11",)
    assert asked.options.environments.chosen_gpus == asked.fitting.gpus == (V100,)
    assert [(match.version, match.fit) for match in asked.fitting.matches] == [("1.14.0", "fine"), ("2.0.0", "fine")]
    assert asked.fitting.notes == ()


def test_a_version_that_fails_here_is_refused_and_told_how_to_go_on():
    with pytest.raises(UsageError) as refused:
        fitted("1.14", "2.4", "2.13", gpus=("1",))
    told = str(refused.value).splitlines()
    assert told[0] == "--gpu: not every version can run here:"
    assert told[1].startswith("  1.14.0 on GPU 1 (NVIDIA A100): compute capability 8.0 is known to fail")
    assert told[1].endswith("release that runs on it is 2.4.4; 1.15-nv, NVIDIA's build of 1.15.5, runs on it")
    assert told[2:] == [
        "Use versions that run on it (--versions 1.15-nv,2.4,2.13), or measure them anyway with --allow-unsupported-gpu"
    ]
    assert refused.value.exit_code == 2


def test_a_build_of_another_maker_stands_in_for_what_no_new_card_takes():
    with pytest.raises(UsageError, match=r"Use versions that run on it \(--versions 1.15-nv,2.10-nv,2.13\)"):
        fitted("1.14", "2.0", "2.13", gpus=("2",))
    asked = fitted("1.15-nv", "2.10-nv", "2.16", gpus=("2",))
    assert {match.fit for match in asked.fitting.matches} == {"fine"}
    assert [note.partition(", and not")[0] for note in asked.fitting.notes] == [
        "1.15.5+nv23.03 is NVIDIA's build of TensorFlow 1.15.5",
        "2.10.0+nv22.10 is NVIDIA's build of TensorFlow 2.10.0",
    ]


def test_the_versions_that_a_refusal_offers_can_be_named_together():
    with pytest.raises(UsageError) as refused:
        fitted("2.3", "2.4", "1.14", "1.15-nv", gpus=("1",))
    [offered] = re.findall(r"--versions (\S+)\)", str(refused.value))
    assert [version.number for version in catalog.resolve_versions(offered.split(","))] == ["2.4.4", "1.15.5+nv23.03"]


def test_virtual_environments_are_offered_only_what_they_can_have():
    with pytest.raises(UsageError, match=r"--versions 2.5,2.13\)"):
        fitted("2.0", "2.13", gpus=("1",), engine="venv")


def test_a_build_is_told_on_a_cpu_as_well():
    options = RunOptions(versions=("1.15-nv", "2.13"), suite="smoke", engine="docker")
    [note] = fit(check_request(options)).fitting.notes
    assert note.startswith("1.15.5+nv23.03 is NVIDIA's build of TensorFlow 1.15.5, and not the release")


def test_the_card_that_a_batch_system_has_given_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    assert fitted("2.4", "2.13").fitting.gpus == (A100,)
    assert fitted("2.13", "2.16", gpus=("2",)).fitting.gpus == (H100,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-9f31-33")
    assert fitted("2.13", "2.16").fitting.gpus == (H100,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UsageError, match="hides all GPUs"):
        fitted("2.4", "2.13")


def test_clocks_that_are_held_are_in_the_plan_and_take_root(monkeypatch: pytest.MonkeyPatch):
    places = EngineOptions(gpu=True, lock_mhz=1200)
    asked = check_request(RunOptions(versions=("2.4", "2.13"), suite="smoke", environments=places))
    monkeypatch.setattr(cards.os, "geteuid", lambda: 0)
    held = fit(asked, lambda: ALL, lambda: (READING,))
    assert held.freeze("docker").lock_mhz == 1200
    assert "GPU clocks were held at 1200 MHz (--lock-clocks)" in held.fitting.notes
    monkeypatch.setattr(cards.os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="--lock-clocks needs root"):
        fit(asked, lambda: ALL, lambda: (READING,))


def test_where_no_version_can_run_another_gpu_may():
    b200 = replace(H100, name="NVIDIA B200", capability="10.0")
    with pytest.raises(UsageError, match=r"Use other versions, or another GPU \(--gpus\), or measure them"):
        fitted("2.16", "2.17", seen=(b200,), engine="venv")
    with pytest.raises(UsageError, match=r"no release is known to run on it; 2.17-nv, NVIDIA's build of 2.17.0, runs"):
        fitted("2.16", "2.17", seen=(b200,))


def test_every_card_that_is_named_has_to_fit():
    with pytest.raises(UsageError, match=r"1\.14\.0 on GPU 1 \(NVIDIA A100\)"):
        fitted("1.14", "2.0", gpus=("0", "1"))


def test_claims_are_left_out_by_naming_others():
    chosen = claims.choose_claims(("predict-after-compile",), None, claims.all_claims(workloads.all_workloads()))
    on_gpu = tuple(replace(claim, devices=("gpu",)) for claim in chosen)
    with pytest.raises(UsageError, match="Name claims about other versions, or measure them"):
        fitted(gpus=("2",), claims=on_gpu)


def test_what_is_measured_by_force_is_told_in_every_report_and_given_time():
    asked = fitted("1.14", "2.4", gpus=("1",), force=True)
    (note,) = asked.fitting.notes
    assert note.startswith("MEASURED BY FORCE: 1.14.0 on GPU 1 (NVIDIA A100): compute capability 8.0 is known to fail")
    assert note.endswith("Believe no figure of it")
    assert asked.fitting.slow_starts == {"1.14.0"}


def test_code_that_the_driver_makes_is_told_in_every_report():
    asked = fitted("2.13", "2.16", gpus=("2",))
    (note,) = asked.fitting.notes
    assert note.startswith(
        "2.13.0 on GPU 2 (NVIDIA H100): it holds no code for compute capability 9.0, only PTX for 8.0"
    )


def test_no_card_and_nobody_who_watches_it_are_told():
    asked = fitted("1.14", "2.0", seen=())
    assert (asked.fitting, asked.options.environments.chosen_gpus) == (GpuSupport(notes=(NOT_SEEN,)), ())
    assert asked.freeze("docker").gpus == ()
    assert fitted("1.14", "2.0", read=()).fitting.notes == (NOT_WATCHED,)


def test_a_card_that_is_split_is_told():
    asked = fitted("2.4", "2.13", seen=(replace(A100, mig=True),))
    assert asked.fitting.notes[0].startswith("GPU 1 (NVIDIA A100) is split (MIG)")


def test_without_a_gpu_nobody_looks_for_one():
    def never():
        raise AssertionError("asked for GPUs")

    options = RunOptions(versions=("1.14", "2.0"), suite="smoke")
    asked = check_request(options)
    assert fit(asked, never, never) == asked


def test_a_run_that_goes_on_takes_the_cards_of_its_plan(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cards, "find_gpus", lambda: ALL)
    asked = fitted("2.13", "2.16", gpus=("2",))
    found = find_gpus_again(asked.freeze("docker").gpus, asked.selection.versions)
    assert found.gpus == (H100,)
    assert found.slow_starts == {"2.13.0"}
    assert find_gpus_again((), asked.selection.versions) == GpuSupport()


@pytest.mark.parametrize(("engine", "isolation"), [("docker", "container"), ("venv", "process")])
def test_one_process_at_a_time_is_a_worker_per_replicate(engine: str, isolation: str):
    options = RunOptions(versions=("1.14", "2.0"), suite="smoke", environments=EngineOptions(gpu=True, exclusive=True))
    plan = check_request(options).freeze(engine)
    assert (plan.exclusive, plan.isolation) == (True, isolation)


MIG = replace(H100, mig=True, slices=(replace(H100, uuid="MIG-77aa", name="NVIDIA H100 MIG 1g.10gb", mig=True),))


def test_a_slice_goes_by_its_uuid_and_is_no_note():
    asked = fitted("2.16", "2.18", seen=(V100, MIG), gpus=("MIG-77",))
    assert asked.options.environments.gpus == ("MIG-77aa",)
    assert asked.fitting.notes == ()


def test_a_split_card_is_noted_with_the_way_to_name_a_slice():
    asked = fitted("2.16", "2.18", seen=(V100, MIG), gpus=("2",))
    (note,) = asked.fitting.notes
    assert "is split (MIG)" in note
    assert "--gpus MIG-" in note


def test_slices_are_listed_where_none_is_what_was_named():
    with pytest.raises(UsageError, match=r"2: NVIDIA H100 MIG 1g.10gb MIG-77aa"):
        choose_gpus(("MIG-9",), (V100, MIG))


def test_a_card_for_one_process_takes_the_run_that_opens_one():
    alone = replace(H100, mode="exclusive")
    with pytest.raises(
        UsageError,
        match=r"takes one process at a time .* add --gpu-exclusive, or allow several processes with `sudo nvidia-smi",
    ):
        fitted("2.16", "2.18", seen=(alone,))
    places = EngineOptions(gpu=True, exclusive=True)
    assert fitted("2.16", "2.18", seen=(alone,), environments=places).fitting.gpus == (alone,)


def test_a_card_that_takes_no_process_is_refused():
    with pytest.raises(UsageError, match=r"takes no process \(its compute mode is Prohibited\)"):
        fitted("2.16", "2.18", seen=(replace(H100, mode="prohibited"),))


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (replace(H100, free_mb=2999), "has 2999 MB left, and two arms"),
        (replace(H100, linked=False), "check the fabric manager"),
    ],
)
def test_what_may_go_wrong_on_a_card_is_noted_before(card: Gpu, words: str):
    (note,) = fitted("2.16", "2.18", seen=(card,)).fitting.notes
    assert words in note


def adapted(card: Gpu, name: str = "xla-on-gpu", *, gpu: bool = True, force: bool = False):
    chosen = claims.choose_claims((name,), None, claims.all_claims(workloads.all_workloads()))
    options = RunOptions(claims=chosen, environments=EngineOptions(gpu=gpu, force=force))
    found, notes = adapt_claims(options, lambda: (card,))
    return [str(target) for target in found.claims[0].targets], notes, found.claims[0], chosen[0]


def test_a_claim_about_any_release_is_tested_in_those_that_hold_code_for_the_card():
    targets, notes, moved, claim = adapted(H100)
    assert targets == ["2.18.1", "2.21.0"]
    assert len(moved.expectations) == 2 * len(claim.expectations)
    assert {pair.target for pair in moved.pairs} == {"2.18.1", "2.21.0"}
    (note,) = notes
    assert note.startswith("xla-on-gpu is tested in 2.18.1 and 2.21.0 instead: 2.13.0 on GPU 2 (NVIDIA H100): it holds")
    targets, _, moved, claim = adapted(H100, "function-alone-gpu")
    assert (targets, len(moved.parts)) == (["2.18.1", "2.21.0"], 2 * len(claim.parts))


@pytest.mark.parametrize(
    ("card", "changes"),
    [
        pytest.param(A100, {}, id="its own release holds code for the card"),
        pytest.param(replace(H100, capability="3.5"), {}, id="no release holds any"),
        pytest.param(H100, {"gpu": False}, id="on the CPU"),
        pytest.param(H100, {"force": True}, id="its own release is forced"),
        pytest.param(H100, {"name": "predict-after-compile"}, id="its figures are those of its releases"),
    ],
)
def test_other_claims_stay_as_they_are(card: Gpu, changes: dict[str, object]):
    _, notes, found, claim = adapted(card, **changes)
    assert (found, notes) == (claim, ())

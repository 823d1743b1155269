"""Whether the versions of the table can run on GPUs that people have, from the table itself."""

from dataclasses import replace

import pytest

from orchestrator import catalog
from orchestrator.catalog.gpu_support import GpuSupport, Match, fit_cuda, match_gpu
from orchestrator.catalog.version import Cuda, Version
from orchestrator.machine.gpu import Gpu

NEW_DRIVER = "580.65.06"
CARDS = {
    "K80": "3.7", "GTX 980": "5.2", "P100": "6.0", "V100": "7.0", "T4": "7.5", "A100": "8.0", "RTX 3090": "8.6",
    "RTX 4090": "8.9", "H100": "9.0", "B200": "10.0", "RTX 5090": "12.0",
}  # fmt: skip


def card(name: str, driver: str | None = NEW_DRIVER, **changes: object) -> Gpu:
    made = Gpu(0, f"GPU-{name}", name, CARDS[name], driver, 80_000, 300, True, False)
    return replace(made, **changes)


def version(name: str) -> Version:
    found = catalog.find_version(name)
    assert found is not None
    return found


def matched(name: str, on: Gpu) -> Match:
    return match_gpu(version(name), on, catalog.releases())


# Builds as TensorFlow itself names them, for the images of users.
@pytest.mark.parametrize(
    ("number", "compute", "on", "fit"),
    [
        ("12.5.1", ("6.0", "7.0", "8.0", "8.9", "9.0"), "H100", "fine"),
        ("12.5.1", ("6.0", "7.0", "8.0", "8.9", "9.0"), "K80", "unsupported"),
        ("12.5.1", ("6.0", "9.0"), "B200", "unsupported"),
        ("12.9", ("7.5", "9.0", "10.0"), "B200", "fine"),
        ("11.8", ("3.5", "5.0", "6.0", "7.0", "7.5", "8.0"), "H100", "jit"),
        ("10.0", ("3.5", "7.0"), "A100", "unsupported"),
    ],
)
def test_a_build_is_judged_by_its_cuda_and_its_code(number: str, compute: tuple[str, ...], on: str, fit: str):
    cuda = catalog.find_cuda(number, compute)
    assert cuda is not None
    assert fit_cuda(cuda, card(on))[0] == fit


@pytest.mark.parametrize(("number", "compute"), [("", ("8.0",)), ("12.5", ()), ("99.1", ("8.0",)), ("x", ("8.0",))])
def test_a_build_that_nothing_is_known_of_is_not_judged(number: str, compute: tuple[str, ...]):
    assert catalog.find_cuda(number, compute) is None


@pytest.mark.parametrize(
    ("name", "on", "fit"),
    [
        ("1.14", "K80", "fine"),
        ("1.14", "V100", "fine"),
        ("1.14", "T4", "fine"),
        ("1.14", "A100", "unsupported"),
        ("1.14", "H100", "unsupported"),
        ("2.0", "RTX 3090", "unsupported"),
        ("2.3", "T4", "fine"),
        ("2.3", "RTX 3090", "unsupported"),
        ("2.4", "RTX 3090", "fine"),
        ("2.4", "H100", "unsupported"),
        ("2.5", "H100", "jit"),
        ("2.13", "A100", "fine"),
        ("2.13", "RTX 4090", "fine"),
        ("2.13", "H100", "jit"),
        ("2.15", "K80", "unsupported"),
        ("2.16", "GTX 980", "fine"),
        ("2.16", "H100", "fine"),
        ("2.17", "GTX 980", "unsupported"),
        ("2.20", "V100", "fine"),
        ("2.20", "T4", "fine"),
        ("2.20", "H100", "fine"),
        ("2.20", "B200", "unsupported"),
        ("2.20", "RTX 5090", "unsupported"),
        ("1.15-nv", "H100", "fine"),
        ("1.15-nv", "B200", "jit"),
        ("2.2-nv", "A100", "fine"),
        ("2.2-nv", "H100", "unsupported"),
        ("2.17-nv", "RTX 5090", "fine"),
        ("2.17-nv", "V100", "unsupported"),
    ],
)
def test_a_version_on_a_card_with_a_new_driver(name: str, on: str, fit: str):
    assert matched(name, card(on)).fit == fit


def test_every_release_is_judged_on_every_card_and_each_card_has_a_release_or_a_warning():
    releases = catalog.releases()
    for name in CARDS:
        fits = {match_gpu(one, card(name), releases).fit for one in releases if one.on("gpu")}
        assert fits <= {"fine", "jit", "unsupported"}
        assert name in ("B200", "RTX 5090") or "fine" in fits


@pytest.mark.parametrize(
    ("name", "on", "driver", "fit"),
    [
        ("1.14", "V100", "410.48", "fine"),
        ("1.14", "V100", "396.26", "unsupported"),
        ("2.13", "A100", "450.80.02", "fine"),
        ("2.13", "A100", "450.51", "unsupported"),
        ("2.15", "A100", "525.60.13", "fine"),
        ("2.15", "A100", "470.199.02", "unsupported"),
        ("2.13", "H100", "520.61.05", "jit"),
        ("2.13", "H100", "515.105.01", "unsupported"),
        ("2.12", "H100", "520.61.05", "jit"),
    ],
)
def test_a_driver_runs_what_is_older_and_reads_no_newer_ptx(name: str, on: str, driver: str, fit: str):
    assert matched(name, card(on, driver)).fit == fit


def test_a_driver_too_old_says_which_it_takes():
    assert str(matched("2.15", card("A100", "470.199.02"))) == (
        "2.15.1 on GPU 0 (A100): its CUDA 12.2 needs driver 525 or newer (installed: 470.199.02); "
        "the nearest that runs on it is 2.14.1"
    )
    assert "which needs driver 520.61 or newer" in matched("2.13", card("H100", "515.105.01")).reason


def test_a_card_too_new_is_told_what_goes_wrong_and_what_runs():
    assert str(matched("1.14", card("H100"))) == (
        "1.14.0 on GPU 0 (H100): compute capability 9.0 is known to fail with CUDA 10.0: its libraries know no such "
        "GPU: wrong results, or a first operation that never ends; the nearest that runs on it is 2.16.2"
    )
    assert matched("2.3", card("RTX 3090")).alternative == "the nearest that runs on it is 2.4.4"


def test_a_card_too_old_is_told_what_there_is_code_for():
    found = matched("2.17", card("GTX 980"))
    assert found.reason == "it holds code for compute capability 6.0, 7.0, 8.0, 8.9, 9.0, the GPU has 5.2"
    assert found.alternative == "the nearest that runs on it is 2.16.2"


def test_a_card_that_nothing_runs_on_is_told_so():
    here = card("RTX 5090")
    others = [version("2.20"), version("1.14")]
    assert match_gpu(version("2.20"), here, others).alternative == "no version in the table is known to run on it"


def test_code_that_the_driver_makes_is_no_alternative_and_needs_none():
    assert matched("2.13", card("H100")).alternative == ""
    assert match_gpu(version("1.14"), card("H100"), [version("2.13")]).alternative.startswith("no version")


def test_of_two_that_are_as_near_the_release_is_taken():
    others = (*catalog.releases(), *catalog.list_builds())
    assert match_gpu(version("2.3"), card("A100"), others).nearest == "2.4"
    assert match_gpu(version("2.0"), card("A100"), others).nearest == "2.2-nv"
    assert match_gpu(version("1.14"), card("A100"), ()).nearest is None


def test_libraries_that_are_older_than_the_card_are_told():
    assert "its cuBLAS and cuDNN" not in matched("2.5", card("H100")).reason
    assert "its cuBLAS and cuDNN (CUDA 11.8) are older than such GPUs" in matched("2.5", card("B200")).reason


def test_what_the_card_does_not_say_is_tried():
    assert matched("2.13", card("A100", capability=None)).fit == "unknown"
    assert matched("2.13", card("A100", None)).fit == "fine"
    assert matched("2.13", card("H100", None)).fit == "jit"
    assert matched("2.13", card("A100", "a driver of its own")).fit == "fine"


def test_what_the_table_does_not_say_is_tried_and_what_it_has_not_is_refused():
    full = version("2.13")
    silent = replace(full, flavours=tuple(replace(flavour, cuda=None) for flavour in full.flavours))
    assert match_gpu(silent, card("A100"), ()).fit == "unknown"
    only_cpu = match_gpu(replace(full, flavours=full.on("cpu")), card("A100"), catalog.releases())
    assert (only_cpu.fit, only_cpu.reason) == ("unsupported", "the table of versions has no GPU flavour of it")


def test_code_runs_on_what_is_no_older_of_its_own_major_version_only():
    cuda = Cuda(
        number="12.5", cudnn=None, compute=("7.0", "8.6", "9.0"), driver="525", jit_driver="555.42", broken_from=None,
        broken="",
    )  # fmt: skip
    full = version("2.20")
    own = replace(full, flavours=tuple(replace(flavour, cuda=cuda) for flavour in full.on("gpu")))
    fits = {capability: match_gpu(own, card("A100", capability=capability), ()).fit for capability in CARDS.values()}
    assert [capability for capability, fit in fits.items() if fit == "fine"] == ["7.0", "7.5", "8.6", "8.9", "9.0"]
    assert fits["8.0"] == "unsupported", "PTX for 9.0 makes no code for 8.0"
    assert fits["10.0"] == fits["12.0"] == "jit"


def test_versions_without_code_for_a_card_start_slowly():
    matches = tuple(matched(name, card("H100")) for name in ("1.14", "2.13", "2.16"))
    assert GpuSupport(matches=matches).slow_starts == {"1.14.0", "2.13.0"}
    assert GpuSupport().slow_starts == frozenset()

"""GPUs by nvidia-smi, where NVML does not answer: a program on PATH that speaks as the real one does."""

import stat
import sys
from pathlib import Path

import pynvml
import pytest

from orchestrator.machine import nvidia_smi
from orchestrator.machine.gpu import Gpu, find_gpus
from tests.support.nvidia import MadeUpDriver

A100 = {
    "index": "0", "uuid": "GPU-4d6a", "name": "NVIDIA A100-SXM4-80GB", "compute_cap": "8.0",
    "driver_version": "550.54.15", "memory.total": "81920", "power.limit": "400.00", "persistence_mode": "Enabled",
    "mig.mode.current": "Disabled", "memory.free": "80000", "compute_mode": "Exclusive_Process",
    "fabric.state": "Completed",
}  # fmt: skip
GTX = {
    "index": "1", "uuid": "GPU-9f31", "name": "GeForce GTX 980", "driver_version": "550.54.15", "memory.total": "4043",
    "power.limit": "[Not Supported]", "persistence_mode": "Disabled", "mig.mode.current": "[N/A]", "compute_cap": "5.2",
    "memory.free": "4000", "compute_mode": "Default", "fabric.state": "[N/A]",
}  # fmt: skip

FAKE = """#!{python}
import sys
sys.stdout.write({complaint!r})
if {complaint!r}:
    sys.exit({code})
fields = next(part.split("=")[1] for part in sys.argv if part.startswith("--query-gpu")).split(",")
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
for field in fields:
    if field in {unknown!r}:
        print('Field "%s" is not a valid field to query.\\n' % field)
        sys.exit(2)
for card in {cards!r}:
    print(", ".join(card[field] for field in fields))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a nvidia-smi on PATH, alone there; returns the log of what it was asked."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(*cards: dict[str, str], unknown: tuple[str, ...] = (), complaint: str = "", code: int = 9) -> Path:
        log = tmp_path / "asked"
        program = tmp_path / "nvidia-smi"
        program.write_text(
            FAKE.format(
                python=sys.executable, log=str(log), unknown=unknown, cards=cards, complaint=complaint, code=code
            )
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return log

    return make


def without_nvml() -> MadeUpDriver:
    return MadeUpDriver(fails=pynvml.NVMLError_LibraryNotFound())


def test_a_card_tells_the_same_facts_as_to_nvml(install):
    install(A100, GTX)
    assert find_gpus(without_nvml()) == (
        Gpu(
            0, "GPU-4d6a", "NVIDIA A100-SXM4-80GB", "8.0", "550.54.15", 81920, 400, True, False,
            free_mb=80000, mode="exclusive", linked=True,
        ),
        Gpu(
            1, "GPU-9f31", "GeForce GTX 980", "5.2", "550.54.15", 4043, None, False, None, free_mb=4000, mode="shared",
        ),
    )  # fmt: skip


def test_it_is_not_asked_where_nvml_answers(install):
    log = install(A100)
    assert [card.name for card in find_gpus(MadeUpDriver({"nvmlDeviceGetName": "Tesla K80"}))] == ["Tesla K80"]
    assert not log.exists()


def test_it_is_asked_once_in_a_process(install):
    log = install(A100)
    find_gpus(without_nvml())
    find_gpus(without_nvml())
    (asked,) = log.read_text().splitlines()
    assert asked == (
        "--query-gpu=index,uuid,name,compute_cap,driver_version,memory.total,power.limit,persistence_mode,"
        "mig.mode.current,memory.free,compute_mode,fabric.state --format=csv,noheader,nounits"
    )


def test_an_old_driver_is_asked_without_what_it_does_not_know(install):
    log = install(A100, unknown=("compute_cap", "mig.mode.current"))
    (card,) = find_gpus(without_nvml())
    assert (card.capability, card.mig, card.driver, card.memory_mb) == (None, None, "550.54.15", 81920)
    assert len(log.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("complaint", "code"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9),
        ("No devices were found\n", 0),
        ("Unable to determine the device handle for GPU0: 0000:01:00.0: GPU is lost. Reboot the system\n", 0),
        ('Field "something.else" is not a valid field to query.\n', 2),
    ],
)
def test_a_program_that_finds_nothing_has_no_cards(install, complaint: str, code: int):
    install(complaint=complaint, code=code)
    assert find_gpus(without_nvml()) == ()


def test_a_program_that_does_not_start_or_is_not_there_has_no_cards(install, tmp_path: Path):
    assert nvidia_smi.query_gpus() == ()
    (tmp_path / "nvidia-smi").write_text("no program at all")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert nvidia_smi.query_gpus() == ()


def test_a_card_that_is_gone_leaves_the_others(install):
    install(
        {**A100, "power.limit": "ERR!", "memory.total": "[Unknown Error]", "memory.free": "Unknown Error"},
        {**GTX, "index": "Unable to say"},
    )
    (card,) = find_gpus(without_nvml())
    assert (card.index, card.power_limit_w, card.memory_mb, card.free_mb) == (0, None, None, None)

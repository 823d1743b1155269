"""A worker on a machine with GPUs: what it sees, what it says if it sees none, and a replicate that has lost them.

TensorFlow and NVIDIA's driver are stubs, which have as many GPUs as their variables say.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, VisibleGpu
from orchestrator.results.streams import read_stream
from tests.support import libcuda
from tests.support.bench import PATIENCE_S, Bench

# It takes what TensorFlow is said to have away from the process that builds it.
LOSING = """
    import os

    def build(tf, params):
        os.environ["STUB_GPUS"] = params["left"]
        return lambda: tf.constant(1)
"""


# A call returns when the GPU has its work, and not when that is done.
QUEUEING = """
    def build(tf, params):
        def step():
            tf.queue.launch(float(params["seconds"]))
            return {"number": 1.0, "tensor": tf.constant(1.0)}[params["result"]]
        return step
"""


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Start a worker whose TensorFlow and driver have been told these things."""
    made: list[Bench] = []

    def start(**told: object) -> Bench:
        variables = {name: str(value) for name, value in told.items()}
        folder = tmp_path / str(len(made))
        folder.mkdir()
        library = libcuda.build(tmp_path / "cuda")
        made.append(Bench(folder, own={"LD_LIBRARY_PATH": str(library), **variables}))
        return made[-1]

    yield start
    for bench in made:
        bench.channel.close()


def build_row(bench: Bench) -> dict[str, object]:
    assert bench.client.quit()
    table, cut = read_stream(bench.stream)
    assert not cut
    rows: list[dict[str, object]] = table.to_pylist()
    return next(row for row in rows if row["phase"] == "build")


def test_gpus_are_told_without_a_word_of_the_driver(on: Callable[..., Bench]) -> None:
    bench = on(STUB_GPUS=2)
    bench.hello(gpus=2)
    seen = bench.client.gpus(PATIENCE_S)
    assert seen.gpus == (VisibleGpu("Tesla T4", "7.5"),) * 2
    assert str(seen.driver) == ""


@pytest.mark.parametrize("code", [3, 34, 46, 100, 101, 304, 802, 803, 804, 999, 12345])
def test_without_a_gpu_the_driver_says_why(on: Callable[..., Bench], code: int) -> None:
    bench = on(STUB_CUINIT=code)
    bench.hello(gpus=1)
    seen = bench.client.gpus(PATIENCE_S)
    assert seen.gpus == ()
    assert (seen.driver.code, seen.driver.version) == (code, 12040)
    assert str(seen.driver).startswith(f"cuInit returned {code}: ")


def test_without_the_drivers_library_that_is_the_reason(fresh: Bench) -> None:
    fresh.hello(gpus=1)
    driver = fresh.client.gpus(PATIENCE_S).driver
    if not driver.library:
        pytest.skip("this machine has NVIDIA's driver")
    assert "libcuda.so.1" in str(driver)


@pytest.mark.parametrize(("mig", "uuid"), [("", f"GPU-{libcuda.UUID}"), ("1", f"MIG-01{libcuda.UUID[2:]}")])
def test_a_replicate_records_its_device_and_the_memory_it_took_there(
    on: Callable[..., Bench], mig: str, uuid: str
) -> None:
    bench = on(STUB_GPUS=1, STUB_CUDA_DEVICES=1, STUB_MIG=mig)
    bench.hello(gpus=1)
    number, opened = bench.open("good")
    assert isinstance(opened, Opened)
    assert isinstance(bench.burst(number, 1), Burst)
    assert isinstance(bench.close(number), Closed)
    row = build_row(bench)
    assert (row["device"], row["gpu_memory_kb"]) == (f"Tesla T4 {uuid}", 3072)


def test_a_replicate_counts_the_energy_of_its_gpus_if_asked(on: Callable[..., Bench]) -> None:
    told = []
    for count in ((), ("energy",)):
        bench = on(STUB_GPUS=2, STUB_CUDA_DEVICES=2, STUB_WATTS=300)
        bench.workload("waiting", "import time\n\ndef build(tf, params):\n    return lambda: time.sleep(0.05)\n")
        bench.hello(gpus=2)
        number, _ = bench.open("waiting", count=count)
        assert isinstance(bench.burst(number, 10), Burst)
        assert isinstance(bench.close(number), Closed)
        told.append(build_row(bench)["energy_uj"])
    nothing, energy_uj = told
    assert nothing is None
    # Two GPUs of 300 W take 30 J in 50 ms. The count of a burst of half a second may lag behind by 20 ms.
    assert energy_uj == pytest.approx(30e6, rel=0.3)


@pytest.mark.parametrize("watts", [{}, {"STUB_WATTS": 0}], ids=["not told", "a counter that stands still"])
def test_energy_that_is_not_told_is_unknown(on: Callable[..., Bench], watts: dict[str, int]) -> None:
    bench = on(STUB_GPUS=1, STUB_CUDA_DEVICES=1, **watts)
    bench.hello(gpus=1)
    number, _ = bench.open("good", count=("energy",))
    assert isinstance(bench.burst(number, 3), Burst)
    assert isinstance(bench.close(number), Closed)
    assert build_row(bench)["energy_uj"] is None


@pytest.mark.parametrize("content", ["int other(void) { return 0; }", ""], ids=["an old library", "no library"])
def test_a_driver_that_cannot_count_energy_ends_no_replicate(
    on: Callable[..., Bench], tmp_path: Path, content: str
) -> None:
    bench = on(STUB_GPUS=1, STUB_CUDA_DEVICES=1, STUB_WATTS=300)
    library = tmp_path / "cuda" / "libnvidia-ml.so.1"
    library.unlink()
    if content:
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=content.encode(), check=True)
    else:
        library.write_bytes(b"no library")
    bench.hello(gpus=1)
    number, _ = bench.open("good", count=("energy",))
    assert isinstance(bench.burst(number, 3), Burst)
    assert isinstance(bench.close(number), Closed)
    assert build_row(bench)["energy_uj"] is None


@pytest.mark.parametrize("result", ["number", "tensor"])
def test_a_call_lasts_until_the_gpu_has_done_it_whatever_it_returns(on: Callable[..., Bench], result: str) -> None:
    bench = on(STUB_GPUS=2, STUB_CUDA_DEVICES=2)
    bench.workload("queueing", QUEUEING)
    bench.hello(gpus=2)
    number, _ = bench.open("queueing", {"result": result, "seconds": "0.03"})
    burst = bench.burst(number, 2)
    assert isinstance(burst, Burst)
    assert min(burst.walls_ns) >= 30e6


def test_on_a_cpu_no_call_waits_for_a_gpu(fresh: Bench) -> None:
    fresh.workload("queueing", QUEUEING)
    fresh.hello()
    number, _ = fresh.open("queueing", {"result": "number", "seconds": "3600"})
    burst = fresh.burst(number, 2)
    assert isinstance(burst, Burst)
    assert max(burst.walls_ns) < 3600e9


def test_on_a_cpu_there_is_no_device(bench: Bench) -> None:
    number, _ = bench.open("good")
    assert isinstance(bench.close(number), Closed)
    row = build_row(bench)
    assert (row["device"], row["gpu_memory_kb"]) == (None, None)


@pytest.mark.parametrize(("asked", "left"), [(1, "0"), (2, "1")])
@pytest.mark.parametrize("fork", [True, False])
def test_a_replicate_that_has_lost_a_gpu_dies_before_its_first_call(
    on: Callable[..., Bench], asked: int, left: str, fork: bool
) -> None:
    bench = on(STUB_GPUS=asked, STUB_CUDA_DEVICES=asked)
    bench.workload("losing", LOSING)
    bench.hello(gpus=asked, fork=fork)
    _, died = bench.open("losing", {"left": left})
    assert isinstance(died, Died)
    assert died.how == contract.GPU_LOST
    assert died.reason == f"TensorFlow found {left} of {asked} GPUs in its process"


def test_a_program_without_its_gpu_dies_too(on: Callable[..., Bench]) -> None:
    bench = on(STUB_GPUS=1, STUB_CUDA_DEVICES=0)
    bench.workload("script", "print('done')")
    bench.hello(gpus=1)
    number, opened = bench.open("python script.py", program=("python", "script.py"))
    assert isinstance(opened, Opened)
    died = bench.burst(number, 1)
    assert isinstance(died, Died)
    assert (died.how, died.reason) == (contract.GPU_LOST, "the driver shows 0 of 1 GPUs after a run")


def test_a_program_records_the_device_of_its_run(on: Callable[..., Bench]) -> None:
    bench = on(STUB_GPUS=1, STUB_CUDA_DEVICES=1)
    bench.workload("script", "print('done')")
    bench.hello(gpus=1)
    number, _ = bench.open("python script.py", program=("python", "script.py"))
    assert isinstance(bench.burst(number, 1), Burst)
    assert isinstance(bench.close(number), Closed)
    assert build_row(bench)["device"] == f"Tesla T4 GPU-{libcuda.UUID}"

"""A large run's page: how large it is, and what it takes to write it.

`python -m tests.unit.reports.html.test_document_size CASES` writes a run of so many cases and tells both.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from orchestrator import contract
from orchestrator.reports import html
from tests.support.builders import RUN, case, finished, plan, run_folder

VERSIONS = ("1.14.0", "2.0.0", "2.4.0", "2.8.0", "2.12.0", "2.13.0")
ROUNDS, CALLS = 20, 50
PHASES = ("build", "first", "second", *("burst",) * CALLS)
# For 500 cases, all plots drawn, the page is to stay below 16 MB.
MOST_BYTES, MOST_CASES = 16e6, 500


def large_run(path: Path, cases: int) -> Path:
    asked = plan([case("train_loop", model=f"model{number}", mode="eager") for number in range(cases)], VERSIONS)
    run = run_folder(path, asked)
    for place, version in enumerate(VERSIONS):
        table = _stream(version, place, [of.label for of in asked.cases])
        with (
            pa.OSFile(str(run.settled / f"{version}-1.arrow"), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as out,
        ):
            out.write_table(table)
    run.record(finished(how="", seconds=1000.0))
    return run.path


def _stream(version: str, place: int, labels: list[str]) -> pa.Table:
    """Every round of every case, a row a call; what a worker writes, without its loop."""
    count, rows = len(labels) * ROUNDS, len(PHASES)
    draw = np.random.default_rng(place)
    replicate = np.repeat(np.arange(count), rows)
    speed = 1e6 * np.exp(draw.normal(0.1 * place, 0.02, count))
    wall = (speed[replicate] * np.exp(draw.normal(0, 0.05, count * rows))).astype(np.int64)
    phase = np.tile([contract.PHASES.index(one) for one in PHASES], count)
    facts = {
        name: pa.array([1 if of == 0 else None for of in range(rows)] * count, pa.int64())
        for name in contract.REPLICATE_FIELDS
    }
    columns = {
        "run": _label(np.zeros(count * rows), [RUN]),
        "target": _label(np.zeros(count * rows), [version]),
        "case": _label(replicate // ROUNDS, labels),
        "round": replicate % ROUNDS + 1,
        "position": np.zeros(count * rows),
        "replicate": replicate + place * count,
        "burst": np.ones(count * rows),
        "phase": _label(phase, list(contract.PHASES)),
        "ordinal": np.tile(np.arange(rows), count),
        "wall_ns": wall,
        "cpu_ns": wall,
        "steps": np.ones(count * rows),
        **facts,
        "losses": _label(np.zeros(count * rows), ["[]"]),
        "device": _label(np.zeros(count * rows), ["NVIDIA H100"]),
        "output": _label(np.zeros(count * rows), ["{}"]),
        "fifth_output": _label(np.zeros(count * rows), ["{}"]),
    }
    schema = contract.arrow_schema(pa)
    return pa.table([_typed(columns[one.name], one.type) for one in schema], schema=schema)


def _label(codes: np.ndarray, words: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), words)


def _typed(column: np.ndarray | pa.Array, type: pa.DataType) -> pa.Array:
    return column if isinstance(column, pa.Array) and column.type == type else pa.array(column).cast(type)


def test_the_page_of_a_large_run_stays_small(tmp_path: Path):
    # From 40 cases on there are too many ratios for a picture of all.
    few, many = (len(_page(tmp_path / str(cases), cases)) for cases in (41, 51))
    a_case = (many - few) / 10
    assert few + a_case * (MOST_CASES - 41) < MOST_BYTES


def _page(path: Path, cases: int) -> bytes:
    return html.make_page(large_run(path, cases))[0].encode()


def main() -> None:
    cases = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        # In a process of its own: its memory is not the page's.
        building = multiprocessing.Process(target=large_run, args=(path, cases))
        building.start()
        building.join()
        start = time.perf_counter()
        text, run = html.make_page(path)
        print(f"page: {len(text.encode()) / 1e6:.1f} MB of {len(run.replicates)} replicates")
        print(f"read, judged and written in {time.perf_counter() - start:.1f} s")
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()

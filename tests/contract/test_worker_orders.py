"""The worker answers every line, right or wrong, and lives on."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused, WorkerDied
from orchestrator.results import replicates, streams
from tests.support import stub
from tests.support.bench import PATIENCE_S, RUN, Bench

HELLO = {
    "protocol": contract.PROTOCOL,
    "fingerprint": contract.FINGERPRINT,
    "run": RUN,
    "target": stub.VERSION,
    "device": "cpu",
    "gpus": 0,
    "threads": [],
    "fork": True,
    "untuned": False,
    "folders": [],
}


def test_hello_tells_what_was_imported(fresh: Bench):
    ready = fresh.hello()
    assert ready.facts["tensorflow"] == stub.VERSION
    assert ready.facts["python"].startswith("3.")
    assert ready.import_ns > 0


def test_from_hello_to_quit_a_replicate_becomes_rows_that_the_host_reads(bench: Bench):
    """Every phase stands in the stream in order, with its steps, its traces and its results."""
    number = bench.measure(round=4)
    assert bench.client.quit()
    table, cut = streams.read_stream(bench.stream)
    assert not cut
    rows = streams.check_rows(bench.stream, table, RUN).to_pylist()
    assert [row["phase"] for row in rows] == ["build", "first", "second", "warmup", "burst", "burst", "burst"]
    assert [row["ordinal"] for row in rows] == list(range(7))
    assert [row["burst"] for row in rows] == [0, 0, 0, 0, 1, 1, 1]
    assert {(row["replicate"], row["round"], row["case"], row["steps"]) for row in rows} == {(number, 4, "good", 2)}
    (replicate,) = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    assert replicate.target == stub.VERSION
    assert replicate.traces == 1
    assert replicate.output
    assert replicate.fifth_output
    assert replicate.import_ns
    assert replicate.resident_kb


def test_what_the_build_traces_is_not_among_the_traces_of_the_first_calls(bench: Bench):
    bench.workload(
        "traced_early",
        """
        def build(tf, params):
            early, later = tf.function(tf.constant), tf.function(tf.constant)
            for function in (early, tf.function(tf.constant)):
                function(1.0)
            return lambda: (early(1.0), later(1.0))
        """,
    )
    bench.measure("traced_early")
    assert bench.client.quit()
    [replicate] = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    assert (replicate.traces, replicate.later_traces) == (1, 0)


MEMORY = """
    import mmap

    PARAMS = {"holds": ("nothing", "file", "memory", "briefly")}

    def build(tf, params):
        held = None
        if params["holds"] == "file":
            with open(FILE, "rb") as file:
                held = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
            assert not any(held[place] for place in range(0, len(held), 4096))
        elif params["holds"] != "nothing":
            held = b"1" * SIZE
        if params["holds"] == "briefly":
            held = None
        return lambda: held and len(held)
"""


def test_the_memory_of_a_replicate_has_no_pages_of_files_that_it_maps(bench: Bench, tmp_path: Path):
    """How many of them are there depends on how the kernel holds the file, so only the other pages are compared."""
    size = 64 * 2**20
    file = tmp_path / "library.so"
    file.write_bytes(bytes(size))
    bench.workload("memory", MEMORY.replace("FILE", repr(str(file))).replace("SIZE", str(size)))
    # The worker itself holds more once it has closed a replicate.
    for holds in ("nothing", "nothing", "file", "memory", "briefly"):
        number, _ = bench.open("memory", {"holds": holds})
        bench.burst(number, calls=5)
        bench.close(number)
    assert bench.client.quit()
    rows = [row for row in streams.read_stream(bench.stream)[0].to_pylist() if row["memory_kb"]]
    _, nothing, mapped, held, briefly = (row["memory_kb"] / 1024 for row in rows)
    assert mapped == pytest.approx(nothing, abs=4)
    assert held == pytest.approx(nothing + 64, abs=4)
    assert briefly == pytest.approx(nothing + 64, abs=4)
    assert rows[2]["resident_kb"] / 1024 > nothing + 60


def test_a_replicate_of_one_call_has_its_build_and_its_first_call_and_no_other_row(bench: Bench):
    number, opened = bench.open("good", warmup=3, once=True)
    assert isinstance(opened, Opened)
    assert (opened.first_ns > 0, opened.second_ns) == (True, 0)
    assert bench.close(number) == Closed(rows=2)
    whole = bench.measure()
    assert bench.client.quit()
    table = streams.check_rows(bench.stream, streams.read_stream(bench.stream)[0], RUN)
    phases = [row["phase"] for row in table.to_pylist() if row["replicate"] == number]
    assert phases == ["build", "first"]
    loaded = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN)
    assert loaded.problems == ()
    assert {each.number: each.once for each in loaded.replicates} == {number: True, whole: False}
    assert all(each.first_call_ns > 0 and each.build_ns >= 0 for each in loaded.replicates)


def test_a_worker_whose_host_is_gone_closes_its_stream_and_ends(bench: Bench):
    bench.measure()
    bench.channel.close()
    table, cut = streams.read_stream(bench.stream)
    assert (table.num_rows, cut) == (7, False)


def test_two_replicates_are_open_at_once_and_their_bursts_alternate(bench: Bench):
    """As a round does it; the stream holds them in the order in which they were closed."""
    (one, _), (two, _) = bench.open("good"), bench.open("good")
    for number in (one, two, two, one):
        assert isinstance(bench.burst(number, calls=2), Burst)
    assert bench.close(two) == Closed(rows=8)
    assert bench.close(one) == Closed(rows=8)
    assert bench.client.quit()
    rows = streams.read_stream(bench.stream)[0].to_pylist()
    assert [row["replicate"] for row in rows] == [two] * 8 + [one] * 8
    for number in (one, two):
        assert [row["burst"] for row in rows if row["replicate"] == number] == [0, 0, 0, 0, 1, 1, 2, 2]


def test_a_burst_of_short_calls_lasts_and_one_of_long_calls_is_as_it_was_asked_for(bench: Bench):
    bench.workload("slow", "import time\n\n\ndef build(tf, params):\n    return lambda: time.sleep(0.01)\n")
    (quick, _), (slow, _) = bench.open("good"), bench.open("slow")
    lasting, asked = bench.burst(quick, 2, least_s=0.005), bench.burst(slow, 2, least_s=0.005)
    assert isinstance(lasting, Burst)
    assert isinstance(asked, Burst)
    assert 2 < len(lasting.walls_ns) <= 50
    assert len(asked.walls_ns) == 2
    assert bench.close(slow) == Closed(rows=6)


@pytest.mark.parametrize(("call_s", "calls"), [(0.008, 3), (0.018, 2), (0.04, 1)])
def test_the_calls_that_lead_in_a_burst_are_three_unless_they_take_long(bench: Bench, call_s: float, calls: int):
    bench.workload("slept", f"import time\n\n\ndef build(tf, params):\n    return lambda: time.sleep({call_s})\n")
    number, _ = bench.open("slept")
    assert isinstance(bench.burst(number, calls=2), Burst)
    # The build, the first two calls, one of warm-up, and those of the burst.
    assert bench.close(number) == Closed(rows=6)
    assert bench.client.quit()
    loaded = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN)
    (replicate,) = loaded.replicates
    assert replicate.calls == 5 + calls


def test_the_same_seed_gives_every_replicate_the_same_numbers(bench: Bench):
    for seed in (1, 1, 2):
        number, _ = bench.open("good", seed=seed)
        bench.burst(number)
        bench.close(number)
    bench.client.quit()
    first, same, other = (
        found.output for found in replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    )
    assert first == same != other


def test_threads_reach_the_replicate_before_it_builds(fresh: Bench):
    fresh.workload(
        "threads",
        """
        import os

        def refuse(tf, params):
            return "inter {TF_NUM_INTEROP_THREADS}, intra {TF_NUM_INTRAOP_THREADS}".format(**os.environ)
        """,
    )
    fresh.hello(threads=(1, 2))
    assert fresh.open("threads")[1] == Refused("inter 1, intra 2")


def test_a_replicate_says_how_many_threads_tensorflow_states(fresh: Bench):
    fresh.hello(threads=(1, 2))
    assert fresh.open("good")[1].threads == (1, 2)


def test_a_replicate_that_is_left_to_tensorflow_states_its_own_choice(bench: Bench):
    assert bench.open("good")[1].threads == (0, 0)


DATASETS = """
    from types import SimpleNamespace as Namespace

    def refuse(tf, params):
        from tensorflow.python.data.ops.dataset_ops import DatasetV1Adapter, DatasetV2, Options
        given = Options()
        {set_it}
        datasets = DatasetV2(), DatasetV2(given), {adapted}
        prepared = [getattr(each, "{prepare}")() for each in datasets]
        return ", ".join(str({read}) for each in prepared)
    """
OF_NEW = {
    "set_it": "given.autotune.enabled = True", "adapted": "DatasetV1Adapter(DatasetV2(given))",
    "prepare": "_apply_debug_options", "read": "getattr(each, '_dataset', each)._options_attr.autotune.enabled",
}  # fmt: skip
OF_OLD = {
    "set_it": "given.experimental_optimization.autotune = True", "adapted": "DatasetV2(given)",
    "prepare": "_apply_options", "read": "each.options().experimental_optimization.autotune",
}  # fmt: skip
OF_FIRST = {
    **OF_OLD, "set_it": "given.experimental_autotune = True", "read": "each.options().experimental_autotune",
}  # fmt: skip


@pytest.mark.parametrize("untuned", [False, True])
@pytest.mark.parametrize(
    ("names", "old"), [(OF_NEW, ""), (OF_OLD, "2.0"), (OF_FIRST, "1.13")], ids=["2.13", "2.0", "1.13"]
)
def test_datasets_are_untuned_if_asked_and_keep_what_they_set(
    tmp_path: Path, names: dict[str, str], old: str, *, untuned: bool
):
    bench = Bench(tmp_path, own={"STUB_OLD_DATASETS": old})
    with closing(bench.channel):
        bench.workload("datasets", DATASETS.format(**names))
        bench.hello(untuned=untuned)
        own = "False" if untuned else "None"
        assert bench.open("datasets")[1] == Refused(f"{own}, True, True")


def test_threads_that_can_no_longer_be_set_are_not_stated(fresh: Bench):
    """A workload that uses TensorFlow as it is imported fixes the pools before anything can set them."""
    fresh.workload(
        "early",
        """
        import tensorflow as tf

        def fixed(count):
            raise RuntimeError("cannot be modified after initialization")

        tf.config.threading.set_inter_op_parallelism_threads = fixed

        def build(tf, params):
            return lambda: tf.constant([1.0])
        """,
    )
    fresh.hello(threads=(1, 2))
    assert fresh.open("early")[1].threads == (0, 0)


def test_a_probe_asks_for_gpus_in_a_process_of_its_own(veteran: Bench):
    assert veteran.client.gpus(PATIENCE_S).gpus == ()
    veteran.measure()


BAD_ORDERS = {
    "no JSON": ("halt!", "not JSON"),
    "an empty line": ("", "not JSON"),
    "no UTF-8": ("\udcff", "not JSON"),
    "an unknown command": ('{"kind":"dance"}', "unknown kind 'dance'"),
    "a missing key": ('{"kind":"burst","replicate":1}', "burst lacks"),
    "an unknown key": ('{"kind":"quit","hard":1}', "quit knows no hard"),
    "a bool for a number": ('{"kind":"close","replicate":true,"timeout_s":1}', "close.replicate is not int"),
    "a burst of nothing": (
        '{"kind":"burst","replicate":999,"calls":1,"timeout_s":1,"least_s":0}',
        "no replicate 999 is open",
    ),
    "a close of nothing": ('{"kind":"close","replicate":999,"timeout_s":1}', "no replicate 999 is open"),
    "a second hello": (json.dumps({"kind": "hello", **HELLO, "results": "x"}), "hello was sent already"),
}


@pytest.mark.parametrize(("line", "words"), BAD_ORDERS.values(), ids=BAD_ORDERS)
def test_a_bad_order_is_an_error_and_the_worker_lives_on(veteran: Bench, line: str, words: str):
    veteran.channel._stdin.write(line.encode("utf-8", "surrogateescape"))
    event = veteran.say("\n")
    assert event["kind"] == "error"
    assert words in event["message"]
    veteran.measure()


def test_a_replicate_that_is_open_cannot_be_opened_again(veteran: Bench):
    number, opened = veteran.open("good")
    assert isinstance(opened, Opened)
    again = veteran.ask(
        "open", replicate=number, case="good", workload="good", params={}, program={}, round=1, position=0, seed=1,
        warmup=1, once=False, count=(), timeout_s=1.0,
    )  # fmt: skip
    assert again == {"kind": "error", "message": f"replicate {number} is open already"}
    assert isinstance(veteran.burst(number), Burst)
    assert isinstance(veteran.close(number), Closed)


@pytest.mark.parametrize("kind", ["probe", "open", "burst", "close", "profile"])
def test_nothing_is_done_before_hello(fresh: Bench, kind: str):
    examples = {int: 1, float: 1.0, str: "x", dict: {}, list: [], bool: False}
    event = fresh.ask(kind, **{key: examples[wanted] for key, wanted in contract.COMMANDS[kind].items()})
    assert event == {"kind": "error", "message": f"{kind} before hello"}
    fresh.hello()
    fresh.measure()


@pytest.mark.parametrize("other", [{"fingerprint": "0123456789abcdef"}, {"protocol": 99}])
def test_a_host_of_another_contract_is_told_so_and_the_worker_lives_on(fresh: Bench, other: dict):
    event = fresh.ask("hello", **{**HELLO, **other, "results": str(fresh.stream)})
    assert event["kind"] == "error"
    assert contract.FINGERPRINT in event["message"]
    assert str(*other.values()) in event["message"]
    assert not fresh.stream.exists()
    fresh.hello()
    fresh.measure()


def test_results_that_cannot_be_written_fail_the_worker_at_once(fresh: Bench, tmp_path: Path):
    fresh.stream = tmp_path / "no such folder" / "results.arrow"
    with pytest.raises(WorkerDied, match="results failed: FileNotFoundError"):
        fresh.hello()


def test_a_tensorflow_that_cannot_be_imported_fails_the_worker_with_its_words(fresh: Bench, tmp_path: Path):
    (tmp_path / "stub" / "tensorflow" / "__init__.py").write_text("raise ImportError('libcuda.so.1 is missing')")
    with pytest.raises(WorkerDied, match=r"import failed: ImportError: libcuda\.so\.1 is missing"):
        fresh.hello()


def test_a_tensorflow_that_prints_as_it_is_imported_disturbs_nothing(fresh: Bench, tmp_path: Path):
    package = tmp_path / "stub" / "tensorflow" / "__init__.py"
    package.write_text("import os\nprint('printed')\nos.write(1, b'written\\n')\n" + package.read_text())
    fresh.hello()
    fresh.measure()
    assert fresh.log.read_text().startswith("printed\nwritten\n")


def test_a_workload_that_is_nowhere_dies_by_name(veteran: Bench):
    _, died = veteran.open("nowhere")
    assert isinstance(died, Died)
    assert f"no file nowhere.py in {veteran.workloads}" in died.reason
    veteran.measure()


def test_a_worker_that_may_not_fork_is_its_replicate_itself(fresh: Bench):
    """Its rows are those of any other; its process is the one that said hello."""
    fresh.workload(
        "whoami", "import os\ndef build(tf, params):\n    print('built by', os.getpid())\n    return lambda: 1.0"
    )
    pid = fresh.ask(
        "hello", **{**HELLO, "fork": False, "folders": [str(fresh.workloads)], "results": str(fresh.stream)}
    )["pid"]
    number = fresh.measure("whoami")
    assert f"built by {pid}" in fresh.log.read_text()
    with pytest.raises(WorkerDied, match="has had its one replicate"):
        fresh.open("good")
    (replicate,) = replicates.load_replicates([streams.Stream.at(fresh.stream)], RUN).replicates
    assert replicate.number == number


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("def refuse(tf, params):\n    return 'no'\ndef build(tf, params): pass", Refused("no")),
        (
            "def build(tf, params):\n    raise ValueError('x')",
            Died("raised", "ValueError: x (raised in build, at own.py:2)"),
        ),
        (
            "import sys\ndef build(tf, params):\n    sys.exit(0)",
            Died("raised", "SystemExit: 0 (raised in build, at own.py:3)"),
        ),
    ],
)
def test_without_a_fork_a_refusal_and_an_exception_are_answers_too(fresh: Bench, body: str, answer):
    fresh.workload("own", body)
    fresh.hello(fork=False)
    assert fresh.open("own")[1] == answer
    assert fresh.client.quit()


def test_a_workload_imports_what_lies_beside_it_and_hides_no_module_of_python(fresh: Bench):
    fresh.workload("helper", "VALUE = 2")
    fresh.workload("random", "raise ValueError('not this one')")
    fresh.workload("own", "import random\nimport helper\ndef build(tf, params):\n    return lambda: helper.VALUE\n")
    fresh.hello()
    assert isinstance(fresh.open("own")[1], Opened)


def test_without_a_fork_a_workload_that_exits_takes_its_worker_along(fresh: Bench):
    fresh.workload("own", "import os\ndef build(tf, params):\n    os._exit(7)")
    fresh.hello(fork=False)
    with pytest.raises(WorkerDied, match="exit code 7"):
        fresh.open("own")

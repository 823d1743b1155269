"""How many operations of TensorFlow a call runs, as real workers count them; TensorFlow is the stub."""

from collections.abc import Sequence

import pytest

from orchestrator.engines.worker.client import Burst, Closed, Opened
from orchestrator.model import Replicate
from orchestrator.results import replicates, streams
from tests.support.bench import RUN, Bench

HEAD = """
    import threading
    from types import SimpleNamespace as Namespace
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.client import session
    from tensorflow.python.eager import context

    def node(name, *needed):
        return Namespace(name=name, op="Sin", input=needed, attr={{}})

    NODES = [node("a"), node("b", "a"), node("unused", "b")]
    context.FUNCTIONS["f"] = Namespace(node_def=NODES[:2], ret={{"result": "b:y:0"}}, control_ret={{}})

    class Graph:
        version = 1

        def as_graph_def(self):
            return Namespace(node=NODES, library=Namespace(function=[]))

    SESSION = session.BaseSession(Graph())

    def own():
        return 1

    def sin(times):
        for _ in range(times):
            pywrap_tfe.TFE_Py_FastPathExecute(None, "Sin", None, 1)

    def call_function():
        pywrap_tfe.TFE_Py_Execute(None, "", b"f", [], (), 1)

    def make_callable():
        options = Namespace(feed=[], fetch=["b:0"], target=[], tensor_connection=[])
        return SESSION._make_callable_from_options(options)

    def run_thread(target, *args):
        thread = threading.Thread(target=target, args=args)
        thread.start()
        thread.join()

    {}

    def build(tf, params):
        calls = []
        made = make_callable()
        def step():
            {}
        return step
"""


def count(bench: Bench, body: str, *, before: str = "", names: Sequence[str] = ("ops",)) -> list[Replicate]:
    bench.workload("counted", HEAD.format(before, body))
    for number in (1, 2):
        replicate, opened = bench.open("counted", round=number, count=names)
        assert isinstance(opened, Opened), opened
        assert isinstance(bench.burst(replicate), Burst)
        assert bench.close(replicate) == Closed(rows=7)
    assert bench.client.quit()
    return list(replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates)


def operations(counted: list[Replicate]) -> set[tuple[int | None, int | None]]:
    return {(each.operations, each.next_operations) for each in counted}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sin(5)", 5),
        ("own()", 0),
        ("call_function()", 2),
        ("SESSION._call_tf_sessionrun(None, [], [], ['unused'], None)", 3),
        # One of before the counted calls, and one that each of them makes.
        ("made()", 2),
        ("make_callable()()", 2),
        ("run_thread(sin, 50); sin(3)", 3),
    ],
)
def test_each_operation_counts_once_in_each_call(bench: Bench, body: str, expected: int):
    assert operations(count(bench, body)) == {(expected, expected)}


def test_calls_that_run_more_each_time_are_seen_in_both_counts(bench: Bench):
    for each in count(bench, "calls.append(1); sin(len(calls)); [own() for _ in calls]", names=("calls", "ops")):
        assert each.operations is not None
        assert each.next_operations == each.operations + 1
        assert each.python_calls is not None
        # One more is `own`, and one is the stub's function that runs the operation.
        assert each.next_python_calls == each.python_calls + 2


BODY = "sin(5); call_function(); make_callable()()"


@pytest.mark.parametrize(
    ("names", "seen"), [(("calls",), (False, True)), (("calls", "ops"), (True, True)), ((), (False, False))]
)
def test_a_run_has_the_counts_that_it_asks_for_and_neither_changes_the_other(
    bench: Bench, names: Sequence[str], seen: tuple[bool, bool]
):
    # The step, `sin`, `call_function` and the functions of the stub that they call, and those of a callable.
    functions = 1 + 1 + 5 + 1 + 1 + 4
    for each in count(bench, BODY, names=names):
        assert (each.operations, each.next_operations) == ((9, 9) if seen[0] else (None, None))
        assert (each.python_calls, each.next_python_calls) == ((functions, functions) if seen[1] else (None, None))


UNTOUCHED = """
    import sys
    MAKE = vars(session.BaseSession)["_make_callable_from_options"]
    BEFORE = dict(vars(pywrap_tfe)), dict(vars(session.BaseSession._Callable))

    def is_untouched():
        return (dict(vars(pywrap_tfe)), dict(vars(session.BaseSession._Callable))) == BEFORE

    def is_unwatched():
        return vars(session.BaseSession)["_make_callable_from_options"] is MAKE
""".strip()


def test_a_run_that_does_not_ask_runs_as_ever(bench: Bench):
    counted = count(bench, "sin(1); assert is_untouched() and is_unwatched()", before=UNTOUCHED, names=("calls",))
    assert operations(counted) == {(None, None)}


def test_nothing_is_replaced_in_timed_calls_and_nothing_is_left(bench: Bench):
    # The last two calls run under a profiler.
    body = "calls.append(is_untouched()); sin(1); assert not sys.getprofile() or calls.count(False) == 2"
    last = "assert not sys.getprofile() or calls[-1] and is_unwatched()"
    counted = count(bench, f"{body}; {last}", before=UNTOUCHED, names=("calls", "ops"))
    assert operations(counted) == {(1, 1)}
    assert {each.python_calls is not None for each in counted} == {True}


def test_a_call_that_replaces_the_counter_has_no_count(bench: Bench):
    assert operations(count(bench, "pywrap_tfe.TFE_Py_FastPathExecute = print; sin(1)")) == {(None, None)}


def test_a_hook_of_the_workload_stays_and_is_counted_through(bench: Bench):
    hook = """
    SEEN = []

    def hook(*args, before=pywrap_tfe.TFE_Py_FastPathExecute):
        SEEN.append(1)
        return before(*args)

    pywrap_tfe.TFE_Py_FastPathExecute = hook
    """
    body = "SEEN.clear(); sin(2); assert len(SEEN) == 2"
    assert operations(count(bench, body, before=hook.strip())) == {(2, 2)}


@pytest.mark.parametrize(
    "lack",
    [
        "del pywrap_tfe.TFE_Py_FastPathExecute",
        "del context.Context",
        "del session.BaseSession._make_callable_from_options",
        "import sys; sys.modules['tensorflow.python.framework.op_def_registry'] = None",
    ],
)
def test_a_release_that_lacks_a_place_has_no_count(bench: Bench, lack: str):
    # Nor does it have callables.
    head = "make_callable = lambda: None\n    sin = lambda times: None\n    " + lack
    assert operations(count(bench, "sin(1)", before=head)) == {(None, None)}


def test_a_call_that_fails_while_it_is_counted_says_so(bench: Bench):
    bench.workload("counted", HEAD.format(UNTOUCHED, "assert is_untouched(), 'a counter'"))
    replicate, _ = bench.open("counted", count=["ops"])
    bench.burst(replicate)
    died = bench.close(replicate)
    assert "AssertionError: a counter (raised in a counted call" in died.reason


def test_a_first_call_alone_is_not_counted(bench: Bench):
    bench.workload("counted", HEAD.format("", "sin(1)"))
    replicate, _ = bench.open("counted", once=True, count=["ops"])
    bench.close(replicate)
    assert bench.client.quit()
    [only] = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    assert only.operations is None

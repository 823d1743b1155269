"""How operations are counted, and how the places where TensorFlow starts them are left, without TensorFlow."""

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace as Namespace
from typing import Any

import pytest

from workloads import operations
from workloads.counting import count_twice

PLACES = ("TFE_Py_FastPathExecute", "TFE_Py_Execute", "TFE_Py_ExecuteCancelable")
STATEFUL = {"Sin": False, "Cos": False, "Identity": False, "While": False, "Assign": True, "Call": True}


def node(name: str, op: str = "Sin", *needed: str, **functions: str) -> Namespace:
    attributes = {key: Namespace(func=Namespace(name=value), list=Namespace(func=[])) for key, value in functions.items()}
    return Namespace(name=name, op=op, input=needed, attr=attributes)


def function(*nodes: Namespace, ret: str = "", control: str = "") -> Namespace:
    return Namespace(node_def=nodes, ret={"result": ret} if ret else {}, control_ret={"control": control} if control else {})


def measure(functions: Mapping[str, Namespace], name: str = "f") -> int:
    return operations.Sizes(functions.get, STATEFUL.get).of(name)


CHAIN = (node("a", "Sin", "x"), node("b", "Sin", "a:y:0"))


@pytest.mark.parametrize(
    ("definition", "count"),
    [
        (function(*CHAIN, ret="b:y:0"), 2),
        # Only what a result needs runs, and what changes something.
        (function(*CHAIN, ret="a:y:0"), 1),
        (function(*CHAIN, ret="x"), 0),
        (function(*CHAIN, node("c", "Assign", "b:y:0"), ret="a:y:0"), 3),
        (function(*CHAIN, node("c", "Cos", "^b"), control="c"), 3),
        # A call counts, and its function counts at each place.
        (function(*CHAIN, node("c", "g", "b:y:0"), node("d", "g", "c:y:0"), ret="d:y:0"), 2 + 2 + 2 * 3),
        (function(node("a", "Call", f="g"), node("b", "Call", f="g"), ret="b:y:0"), 2 + 2 * 3),
        (function(node("a", "While", cond="g", body="h"), ret="a:y:0"), 1 + 3 + 1 + 3),
    ],
)
def test_a_function_runs_what_it_needs(definition: Namespace, count: int):
    inner = function(*CHAIN, node("c", "Identity", "b:y:0"), ret="c:y:0")
    outer = function(node("a", "g"), ret="a:y:0")
    assert measure({"f": definition, "g": inner, "h": outer}) == count


def test_branches_are_a_list_of_functions():
    branches = Namespace(func=Namespace(name=""), list=Namespace(func=[Namespace(name="g"), Namespace(name="g")]))
    case = Namespace(name="a", op="While", input=(), attr={"branches": branches})
    assert measure({"f": function(case, ret="a:y:0"), "g": function(*CHAIN, ret="b:y:0")}) == 1 + 2 + 2


def test_a_function_that_calls_itself_counts_once():
    assert measure({"f": function(node("a", "Call", f="f"), node("b"), ret="b:y:0")}) == 2


FUNCTIONS = {"f": function(*CHAIN, ret="b:y:0")}


def run_nothing(*_: Any) -> None:
    """Stand in for a function of TensorFlow."""


def make_sessions() -> type:
    """Return a new stand-in for the class of sessions."""

    class Session:
        graph: Any = None

        def _call_tf_sessionrun(self, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any) -> Any:
            return fetches

        def _call_tf_sessionprun(self, handle: Any, feeds: Any, fetches: Any) -> Any:
            return fetches

        class _Callable:
            _session: Any = None

            def __call__(self, *arrays: Any) -> Any:
                return arrays

    return Session


@pytest.fixture
def tensorflow() -> Namespace:
    return Namespace(
        session=make_sessions(),
        executors=Namespace(**dict.fromkeys(PLACES, run_nothing)),
        name_of=lambda operation: operation.encode(),
        context=lambda: Namespace(has_function=FUNCTIONS.__contains__, get_function_def=FUNCTIONS.get),
        defined_function=None,
        is_stateful=STATEFUL.get,
    )


def count(tensorflow: Namespace, call: Callable[[], Any]) -> list[int | None]:
    counts, _ = count_twice(call, lambda: operations.Counter(tensorflow))
    return counts


def run_fast(tensorflow: Namespace, times: int = 1) -> None:
    for _ in range(times):
        tensorflow.executors.TFE_Py_FastPathExecute(None, "Sin", None)


def run_slowly(tensorflow: Namespace, name: str | bytes) -> None:
    tensorflow.executors.TFE_Py_Execute(None, "", name, [], (), 1)


@contextmanager
def nothing_left(tensorflow: Namespace) -> Iterator[None]:
    owners = (tensorflow.executors, tensorflow.session, tensorflow.session._Callable)
    before, collects = [dict(vars(owner)) for owner in owners], gc.isenabled()
    yield
    assert [dict(vars(owner)) for owner in owners] == before
    assert gc.isenabled() == collects


def test_eager_operations_and_functions_add_up(tensorflow: Namespace):
    def call() -> None:
        run_fast(tensorflow, 3)
        run_slowly(tensorflow, b"Cos")
        run_slowly(tensorflow, "f")
        tensorflow.executors.TFE_Py_ExecuteCancelable(None, "", b"f", [], (), None, 1)

    with nothing_left(tensorflow):
        assert count(tensorflow, call) == [3 + 1 + 2 + 2] * 2


def test_a_fast_path_that_fails_does_not_count(tensorflow: Namespace):
    def fall_back(*_: Any) -> None:
        raise TypeError("the slow path")

    def call() -> None:
        with pytest.raises(TypeError):
            run_fast(tensorflow)
        run_slowly(tensorflow, "Sin")

    tensorflow.executors.TFE_Py_FastPathExecute = fall_back
    assert count(tensorflow, call) == [1, 1]


def test_a_call_that_raises_leaves_no_trace(tensorflow: Namespace):
    def call() -> None:
        run_fast(tensorflow)
        raise LookupError("from the call")

    with nothing_left(tensorflow), pytest.raises(LookupError, match="from the call"):
        count(tensorflow, call)


def test_growth_from_call_to_call_is_seen(tensorflow: Namespace):
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        run_fast(tensorflow, 10 + len(calls))

    assert count(tensorflow, call) == [11, 12]


def test_operations_of_another_thread_are_not_counted(tensorflow: Namespace):
    def call() -> None:
        thread = threading.Thread(target=run_fast, args=(tensorflow, 50))
        thread.start()
        run_fast(tensorflow, 3)
        thread.join()

    assert count(tensorflow, call) == [3, 3]


def test_a_call_that_replaces_the_counter_has_no_count_and_keeps_nothing(tensorflow: Namespace):
    def call() -> None:
        tensorflow.executors.TFE_Py_FastPathExecute = print

    with nothing_left(tensorflow):
        assert count(tensorflow, call) == [None, None]


def test_a_call_that_wraps_what_is_there_and_puts_it_back_is_counted(tensorflow: Namespace):
    def call() -> None:
        before = tensorflow.executors.TFE_Py_FastPathExecute
        tensorflow.executors.TFE_Py_FastPathExecute = lambda *args: before(*args)
        run_fast(tensorflow, 2)
        tensorflow.executors.TFE_Py_FastPathExecute = before

    with nothing_left(tensorflow):
        assert count(tensorflow, call) == [2, 2]


def test_what_cannot_be_measured_has_no_count_and_still_returns(tensorflow: Namespace):
    def fail(_: str) -> None:
        raise KeyError("a mistake")

    results = []
    tensorflow.is_stateful = fail
    assert count(tensorflow, lambda: results.append(run_slowly(tensorflow, "f"))) == [None, None]
    assert results == [None, None]


class Graph:
    version = 1

    def as_graph_def(self) -> Namespace:
        nodes = [node("fed"), node("a", "Sin", "fed"), node("b", "Sin", "a:1"), node("c", "f", "b")]
        nodes += [node("unused", "Cos", "b"), node("update", "Assign", "b", "^c")]
        known = Namespace(signature=Namespace(name="f"), **vars(FUNCTIONS["f"]))
        return Namespace(node=nodes, library=Namespace(function=[known]))


def make_session(tensorflow: Namespace) -> Any:
    session = tensorflow.session()
    session.graph = Graph()
    return session


def output(name: str, index: int = 0) -> Namespace:
    return Namespace(oper=name, index=index)


@pytest.mark.parametrize(
    ("feeds", "fetches", "targets", "expected"),
    [
        (["fed"], ["b"], [], 2),
        ([], ["b"], [], 3),
        (["fed"], ["c"], [], 2 + 3),
        (["fed"], [], ["update"], 2 + 3 + 1),
        (["fed"], ["b", "c"], ["update"], 2 + 3 + 1),
        # `a` is not needed, for its other output is.
        (["a"], ["b"], [], 3),
    ],
)
def test_a_session_runs_what_its_fetches_need(
    tensorflow: Namespace, feeds: list[str], fetches: list[str], targets: list[str], expected: int
):
    session = make_session(tensorflow)
    fed, wanted = ([output(name) for name in names] for names in (feeds, fetches))
    assert count(tensorflow, lambda: session._call_tf_sessionrun(None, fed, wanted, targets, None)) == [expected] * 2


def test_a_callable_runs_what_its_options_name(tensorflow: Namespace):
    options = Namespace(
        feed=["fed:0"], fetch=["c:0"], target=["update"],
        tensor_connection=[Namespace(from_tensor="a:0", to_tensor="a:1")],
    )  # fmt: skip
    made = tensorflow.session._Callable()
    made._session, made.counted_options = make_session(tensorflow), options
    # `b` needs what is fed instead of the output of `a`, which runs all the same.
    assert count(tensorflow, made) == [1 + 1 + 3 + 1] * 2


@pytest.mark.parametrize("what", ["a callable of before", "a partial run"])
def test_what_nobody_knows_has_no_count(tensorflow: Namespace, what: str):
    session, made = make_session(tensorflow), tensorflow.session._Callable()
    calls = {"a callable of before": made, "a partial run": lambda: session._call_tf_sessionprun(None, [], [])}
    assert count(tensorflow, calls[what]) == [None, None]

"""What the user's code is warned of: a workload in its fork, and a program in its own process."""

import pytest

from orchestrator.engines.worker.client import Died, Refused
from orchestrator.engines.worker.events import Warned
from tests.support.bench import Bench

LIBRARY = """
    import warnings

    def old(kind=DeprecationWarning):
        warnings.warn("old() goes away; it will be removed in version 3.0", kind, stacklevel=2)

    def inner():
        warnings.warn("inner() is deprecated", DeprecationWarning)
"""


def told(answer: object) -> list[tuple[str, str, int, bool]]:
    assert isinstance(answer, tuple), answer
    return [(each.kind, each.place, each.line, each.own) for each in answer]


def test_a_warning_names_the_line_of_the_code_that_it_is_about(bench: Bench):
    bench.workload("library", LIBRARY)
    bench.workload(
        "own",
        """
        import library

        def build(tf, params):
            library.old()
            return lambda: library.old(FutureWarning)
        """,
    )
    assert told(bench.warn("own")) == [
        ("DeprecationWarning", "own.py", 5, True),
        ("FutureWarning", "own.py", 6, True),
    ]


def test_code_without_warnings_has_none_and_other_warnings_do_not_count(bench: Bench):
    bench.workload(
        "quiet",
        """
        import warnings

        def build(tf, params):
            warnings.warn("this is slow")
            warnings.warn("so is this", RuntimeWarning)
            return lambda: 1
        """,
    )
    assert bench.warn("quiet") == ()


def test_a_filter_hides_nothing_and_a_line_counts_once(bench: Bench):
    bench.workload("library", LIBRARY)
    bench.workload(
        "hidden",
        """
        import warnings
        warnings.filterwarnings("ignore")
        import library

        def build(tf, params):
            def step():
                for _ in range(100):
                    library.old()
            return step
        """,
    )
    assert told(bench.warn("hidden")) == [("DeprecationWarning", "hidden.py", 9, True)]


def test_what_a_package_does_inside_is_not_of_the_users_code(bench: Bench, tmp_path):
    package = tmp_path / "site-packages" / "lib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import warnings\n\n\ndef go():\n    warnings.warn('inner is deprecated', DeprecationWarning)\n"
    )
    bench.workload(
        "user",
        f"""
        import sys
        sys.path.append({str(package.parent)!r})
        import lib

        def build(tf, params):
            return lib.go
        """,
    )
    assert told(bench.warn("user")) == [("DeprecationWarning", "lib", 0, False)]


def test_the_log_of_tensorflow_is_read_and_names_the_caller(bench: Bench):
    bench.workload(
        "logged",
        """
        import logging

        def build(tf, params):
            log = logging.getLogger("tensorflow")
            text = "From %s:%d: old (from lib) is deprecated and will be removed after 2031-01-01.\\nUse new."
            log.warning(text, __file__, 12)
            log.warning("nothing of that kind")
            return lambda: 1
        """,
    )
    answer = bench.warn("logged")
    assert told(answer) == [("DeprecationWarning", "logged.py", 12, True)]
    assert isinstance(answer, tuple)
    assert answer[0].text.startswith("old (from lib) is deprecated and will be removed after 2031-01-01. Use")


def test_a_case_that_dies_or_refuses_says_so(bench: Bench):
    bench.workload("dead", "def build(tf, params):\n    raise ValueError('no')\n")
    died = bench.warn("dead")
    assert isinstance(died, Died)
    assert "ValueError: no" in died.reason
    bench.workload(
        "refusing",
        "def refuse(tf, params):\n    return 'not here'\n\n\ndef build(tf, params):\n    return lambda: 1\n",
    )
    assert bench.warn("refusing") == Refused("not here")
    # The worker is well.
    bench.measure()


def test_a_program_is_warned_in_its_own_process(bench: Bench):
    bench.workload("library", LIBRARY)
    bench.workload("main", "import library\nlibrary.old()\nlibrary.inner()\n")
    assert told(bench.warn("python main.py", program=("python", "main.py"))) == [
        ("DeprecationWarning", "main.py", 2, True),
        ("DeprecationWarning", "library.py", 8, True),
    ]


def test_a_program_that_fails_is_named(bench: Bench):
    bench.workload("main", "raise SystemExit(3)\n")
    answer = bench.warn("python main.py", program=("python", "main.py"))
    assert isinstance(answer, Died)
    assert "exit code 3" in answer.reason


@pytest.mark.parametrize(
    "written",
    [
        "junk",
        "[1, 2]",
        "{}",
        '[{"kind": 1}]',
        '[{"kind": "A", "text": "t", "place": "p", "line": "1", "own": true}]',
        "[" * 5000,
        '[{"kind": "A", "text": "t", "place": "p", "line": 1, "own": true, "more": 1}]',
    ],
    ids=range(7),
)
def test_what_a_program_writes_into_the_file_of_warnings_does_no_harm(bench: Bench, written: str):
    bench.workload(
        "main",
        f"""
        import gc
        from tfcompare_warnings import Collector
        [own] = [each for each in gc.get_objects() if isinstance(each, Collector)]
        with open(own.path, "w") as file:
            file.write({written!r})
        """,
    )
    assert bench.warn("python main.py", program=("python", "main.py")) == ()
    bench.measure()


def test_odd_values_of_a_replicate_cost_its_answer_and_not_the_worker(bench: Bench):
    bench.workload(
        "liar",
        """
        from workloads.program_site import tfcompare_warnings

        def build(tf, params):
            tfcompare_warnings.Collector.list = lambda self: [{"kind": "A", "text": "t", "line": -5}]
            return lambda: 1
        """,
    )
    answer = bench.warn("liar")
    assert isinstance(answer, Died)
    assert answer.how == "contract"
    bench.measure()


def test_texts_are_cut_and_their_number_is_limited(bench: Bench):
    bench.workload(
        "many",
        """
        import warnings

        def build(tf, params):
            for number in range(5000):
                warnings.warn(f"{number} is deprecated" + "x" * 9000, DeprecationWarning)
            return lambda: 1
        """,
    )
    answer = bench.warn("many")
    assert isinstance(answer, tuple)
    assert len(answer) == 300
    assert all(isinstance(each, Warned) and len(each.text) == 500 for each in answer)

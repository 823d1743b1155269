"""What users type, and the files that they write."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog import lockfile, selectors, table
from orchestrator.catalog.claims import CLAIMS, read_claim
from orchestrator.catalog.workloads import BUILTIN, all_workloads, read_workload
from orchestrator.cli import parse
from orchestrator.errors import TfCompareError
from orchestrator.metrics.gates import parse_gates
from tests.fuzz.damage import TEXTS, damaged_text
from tests.fuzz.memory import bounded_memory

WORKLOADS = all_workloads()
SELECTIONS = (
    "train_loop[loop=fit,api=tf.keras,mode=eager,input=numpy,model=small,data=small]",
    "predict[state=compiled]",
    "power",
    "train_loop[loop=*]",
)
NAMES = ("1.14,2.0,2.13", "2.8..2.12", "2.*", "latest,nightly", "2.13.0-gpu 2.16")


def refuses_or_returns(what: Callable[[], object]) -> None:
    try:
        with bounded_memory():
            what()
    except TfCompareError as error:
        str(error).encode("utf-8", "replace")


@given(st.one_of(TEXTS, *map(damaged_text, SELECTIONS)))
def test_a_selection_of_cases(text: str):
    refuses_or_returns(lambda: selectors.select_cases([text], (), WORKLOADS))


@given(st.one_of(TEXTS, *map(damaged_text, NAMES)))
def test_names_of_versions(text: str):
    refuses_or_returns(lambda: catalog.resolve_versions(parse.parse_names(text)))


@given(
    st.sampled_from([parse.threads, parse.budget, parse.margin, parse.cpus, parse.memory_mb]),
    st.one_of(TEXTS, *map(damaged_text, ("1m30s", "4GiB", "5%", "0,2-3", "1,2"))),
)
def test_quantities(read: Callable[[str], object], text: str):
    refuses_or_returns(lambda: read(text))


@given(st.one_of(TEXTS, *map(damaged_text, ("slower,memory:more>10%", "output:differs,died", "first:faster>5"))))
def test_outcomes_that_end_a_command(text: str):
    refuses_or_returns(lambda: parse_gates(text))


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder = tmp_path_factory.mktemp("fuzz")

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path

    return write


@given(damaged=damaged_text((IMAGES / "versions.toml").read_text()))
def test_a_table_of_versions(write, damaged: str):
    refuses_or_returns(lambda: table.read_table(write("versions.toml", damaged)))


@given(damaged=st.one_of([damaged_text(path.read_text()) for path in sorted(CLAIMS.glob("*.toml"))]))
def test_a_claim(write, damaged: str):
    refuses_or_returns(lambda: read_claim(write("a-claim.toml", damaged), WORKLOADS))


@given(damaged=st.one_of([damaged_text(path.read_text()) for path in sorted(BUILTIN.glob("[a-z]*.py"))]))
def test_a_workload(write, damaged: str):
    refuses_or_returns(lambda: read_workload(write("mine.py", damaged), builtin=False))


@given(damaged=damaged_text(next(iter(sorted(IMAGES.glob("locks/*.txt")))).read_text()[:4000]))
def test_a_lock(write, damaged: str):
    refuses_or_returns(lambda: lockfile.read_lock(write("lock.txt", damaged)))

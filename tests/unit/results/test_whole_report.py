"""What is certain in its row, and what is left of it among all comparisons of the report."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from orchestrator.metrics import USUAL
from orchestrator.model import Comparison
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.summary import sentences
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.whole_report import correct_for_report
from orchestrator.stats.report_error import REPORT_ERROR
from tests.support.builders import (
    MS,
    NEW,
    OLD,
    case,
    comparison,
    evaluation,
    finished,
    plan,
    rows,
    run_folder,
    target,
    version_pair,
    write_stream,
)
from tests.support.commands import called

CASES = tuple(case("power", size=str(size)) for size in range(4))
SHAPE = (1.0, -1.0, 0.5, -0.5, 0.7, -0.7)
# A row by itself may have .023; among time, first call and memory, it takes a third of .046.
SURE, ROW_ONLY = REPORT_ERROR / 3 - 0.001, REPORT_ERROR / 3 + 0.001


def of(place: int, p: float, metric: str = "time", verdict: str = "slower") -> Comparison:
    return comparison(replace(version_pair(CASES[place]), metric=metric), 1.2, verdict, p=p)


def test_all_families_share_one_correction():
    found = correct_for_report(
        evaluation(
            comparisons=(of(0, 0.001), of(1, 0.02)),
            neighbours=(of(2, 0.02),),
            references=(of(3, 0.02),),
            metrics={"first": (of(0, 0.02, "first"), of(1, 0.002, "first"))},
        )
    )
    assert found.judged_together == 6
    assert [each.pair for each in found.of_all if not each.row_only] == [of(0, 0).pair, of(1, 0, "first").pair]
    assert [each.row_only for each in found.comparisons] == [False, True]
    assert [each.row_only for each in found.metrics["first"]] == [True, False]


def test_a_pair_counts_once_in_whichever_families_it_is():
    own, strict = of(0, 0.02), of(0, 0.02)
    strict = replace(strict, pair=replace(strict.pair, margin=0.5))
    found = correct_for_report(evaluation(comparisons=(own, strict), neighbours=(own,)))
    assert found.judged_together == 1
    assert not any(each.row_only for each in found.of_all)


def test_what_has_too_few_rounds_takes_nothing_from_the_others():
    few = [replace(of(place, 0.0, verdict="inconclusive"), p=None) for place in (1, 2, 3)]
    assert correct_for_report(evaluation(comparisons=(of(0, 0.02), *few))).judged_together == 1


def write_run(path: Path, p: float) -> RunFolder:
    """Return a run of one look in which the times have this p, and first calls and memory are as equal as can be."""
    rounds, at = len(SHAPE), 0.06
    needed = at / stats.t.isf(p / 2, rounds - 1) * math.sqrt(rounds)
    unit = math.sqrt(sum(each**2 for each in SHAPE) / (rounds - 1))
    run = run_folder(path, plan([CASES[0]], looks=(rounds,), metrics=USUAL))
    for version in (OLD, NEW):
        batches = []
        for number, noise in enumerate(SHAPE, 1):
            log = (at + noise * needed / unit) if version == NEW else 0.0
            time = round(10 * MS * math.exp(log))
            batches.append(rows(CASES[0], version, round=number, replicate=number, bursts=(time,) * 3))
        write_stream(run.worker_output.stream(target(version), 1), batches)
    run.record(finished(how="", seconds=1.0))
    return run


@pytest.fixture
def row_only(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", ROW_ONLY)


def test_a_run_is_corrected_once_all_is_judged(row_only: RunFolder):
    found = judge_run(row_only)
    (times,) = found.comparisons
    assert (found.judged_together, {each.p for each in found.of_metrics}) == (3, {1.0})
    assert times.p == pytest.approx(ROW_ONLY, rel=0.01)
    assert (times.verdict, times.report_verdict, times.row_only) == ("slower", "inconclusive", True)
    # What ends rounds is the verdict of the row.
    (times,) = judge_run(row_only, at_look=True).comparisons
    assert (times.verdict, times.row_only) == ("slower", False)


def test_fewer_comparisons_need_less(row_only: RunFolder):
    found = judge_run(row_only, metrics=())
    assert (found.judged_together, found.comparisons[0].row_only) == (1, False)


def test_sentences_name_what_is_certain_and_count_the_rest(row_only: RunFolder, tmp_path: Path):
    assert sentences(judge_run(row_only)) == (
        "2.0.0 against 1.0.0: nothing decided in 1 case: 1 not certain among all comparisons.",
    )
    sure = judge_run(write_run(tmp_path / "sure", SURE))
    assert sentences(sure) == ("2.0.0 is slower than 1.0.0 in 1 of 1 case (power, 1.04x).",)
    assert metric_sentences(sure) == (
        "first call: the same in 1 of 1 comparison.", "peak memory: the same in 1 of 1 comparison.",
    )  # fmt: skip


NOTE = (
    "--fail-on does not count 1 slower: each is certain in its row, but not among all 3 comparisons of this report; a "
    "new run of its case alone, or with --rounds 20, can decide it"
)


@pytest.mark.parametrize(
    ("p", "gates", "code", "noted"),
    [
        (SURE, "slower", 1, False),
        (ROW_ONLY, "slower", 0, True),
        (ROW_ONLY, "slower>50%,memory:more", 0, False),
        (ROW_ONLY, "slower>50%", 0, False),
        (ROW_ONLY, "slower,inconclusive", 1, True),
        (ROW_ONLY, "faster,memory:more", 0, False),
    ],
)
def test_a_gate_counts_what_is_certain_and_names_what_it_does_not_count(
    monkeypatch, capsys, tmp_path: Path, p: float, gates: str, code: int, noted: bool
):
    run = write_run(tmp_path / "run", p)
    assert called(monkeypatch, "report", str(run.path), "--fail-on", gates) == code
    captured = capsys.readouterr()
    assert (NOTE in captured.err) == noted
    assert re.search(r"▴ 1\.0[34]\d?x", captured.out)


def test_the_table_says_why_a_row_is_not_named(monkeypatch, capsys, row_only: RunFolder):
    monkeypatch.setenv("COLUMNS", "250")
    assert called(monkeypatch, "report", str(row_only.path)) == 0
    assert "1 of 3 certain only in the row: run the case alone" in capsys.readouterr().out
    assert called(monkeypatch, "report", str(row_only.path), "--table", "details") == 0
    out = capsys.readouterr().out
    assert "▴ slower (1)" in out
    assert "(1) certain in its row, but not among all 3 comparisons" in out

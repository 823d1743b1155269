"""What the pages show as printed is what the tool prints of the same figures.

The runs of docs/migration.md are kept, and the line of docs/library.md belongs to a notebook; both have tests of their
own. For the other pages, the figures of a page are given to the code that prints them.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import ClassVar

import pytest
from rich.console import Group, RenderableType

from orchestrator import catalog
from orchestrator.bisect.search import BisectFinding, PlannedStep
from orchestrator.bisect.wording import announce_step, conclusions
from orchestrator.catalog import lockfile, locking
from orchestrator.catalog.changed import provide_targets
from orchestrator.engines.venv.interpreters import missing
from orchestrator.history import json as history
from orchestrator.history.alarms import steps
from orchestrator.history.model import NightReport
from orchestrator.history.terminal import tables
from orchestrator.model import ArmKey, Disturbed, Evaluation, OutputComparison, VerdictName
from orchestrator.model.profile import LayerOutput, ProfiledArm
from orchestrator.nightly.message import compose
from orchestrator.plan.request import RunOptions
from orchestrator.profiling.model import Heading, ProfileResult
from orchestrator.profiling.report import layout_profile
from orchestrator.reports import matrix, table
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.results.evaluation import judge_run
from orchestrator.results.two_speeds import TwoSpeeds, check_two_speeds
from orchestrator.saved_models.answers import ModelReply
from orchestrator.saved_models.judge import LoadedModel
from orchestrator.saved_models.judge import Verdict as LoadedVerdict
from orchestrator.saved_models.question import MODELS, ModelsQuestion
from orchestrator.saved_models.report import ModelsAnswer, layout_models
from orchestrator.saved_models.run import ModelsOutcome, SavedModel
from orchestrator.terminal.text import render_plain
from orchestrator.why.ladder import Explanation, JudgedRung, Ladder, Rung
from orchestrator.why.report import Remedy, WhyAnswer, layout_answer
from orchestrator.why.run import WhyOutcome
from orchestrator.why.state import LadderStep, WhyQuestion, WhyState
from tests.support import nights_shown, searches
from tests.support.actors import play
from tests.support.builders import (
    arm,
    case,
    comparison,
    environment_facts,
    evaluation,
    finished,
    manifest,
    mean,
    plan,
    run_folder,
    target,
    version_pair,
)  # fmt: skip
from tests.support.clock import Clock
from tests.support.documented import PAGES, is_part, printed_blocks
from tests.support.heard import Heard, Told
from tests.support.night_reports import NIGHT, alarm
from tests.support.worlds import World, finding
from workloads.sketches import sketch

# What is no output: commands of other programs, code, and the names of files.
NOT_PRINTED = re.compile(
    r"(uvx )?tfcompare (?!history:)|\.venv/bin/|docker|export |import |git |make |pip |points/|python|ray |sbatch|sudo "
    r"|try:|uv |VERSION \||#SBATCH"
)
TESTED_ELSEWHERE = ("architecture", "library", "migration")


def drawn(parts: RenderableType, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return render_plain(lambda width: parts)


def warnings(*lines: str, monkeypatch: pytest.MonkeyPatch) -> str:
    return drawn(Group(*table.render_warnings(evaluation(warnings=lines))), 110, monkeypatch)


class Slower(World):
    """The search of the page: what each step added, and how wide its interval was."""

    STEPS: ClassVar = {
        "2.1.4": math.log(29.7), "2.0.0": math.log(1.45), "2.4.4": 0.32, "2.6.5": 0.32, "2.8.4": 0.32, "2.10.1": 0.32,
        "2.12.1": math.log(200) - math.log(29.7 * 1.45) - 4 * 0.32,
    }  # fmt: skip
    HALVES: ClassVar = {("1.14.0", "2.13.0"): 0.605, ("2.0.0", "2.1.4"): 0.189, ("1.15.5", "2.0.0"): 0.295}

    def finding(self, wanted: PlannedStep, pair: tuple[str, str]) -> BisectFinding:
        theta = self.logs[pair[1]] - self.logs[pair[0]]
        return finding(*pair, theta, self.HALVES.get(pair, 0.01), thorough=wanted.thorough)


def search_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    ends = PlannedStep("ends", ("1.14.0", "2.13.0"), None, 14)
    split = PlannedStep("split", ("1.14.0", "2.5.3", "2.13.0"), finding("1.14.0", "2.13.0", math.log(200), 0.605), 14)
    return "\n".join([announce_step(ends, 1), announce_step(split, 2), "step 3: ..."])


def search_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    releases = ("1.14.0", "1.15.5", *(each.name for each in catalog.releases() if each.name.startswith("2.")))
    logs, level = {}, 0.0
    for name in releases[: releases.index("2.13.0") + 1]:
        level += Slower.STEPS.get(name, 0.0)
        logs[name] = level
    known = searches.told(Slower(logs), list(logs))
    return "\n".join(conclusions(known, known.search_result))


def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    points = nights_shown.points()
    known = replace(nights_shown.alarm(points), state="known", note="the new allocator, wanted")
    picked = nights_shown.picked(points)
    shown = history.build_shown_series(picked, [known])
    monkeypatch.setenv("COLUMNS", "80")
    return render_plain(lambda width: tables.overview(picked, shown, [known], width))


def plot_of_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    picked = nights_shown.picked(nights_shown.points(), case=nights_shown.EAGER, targets=("nightly",))
    shown = history.build_shown_series(picked, [], lambda key, segment: tuple(steps.changes(segment)))
    monkeypatch.setenv("COLUMNS", "80")
    return render_plain(lambda width: tables.detail(shown, width, whole=False))


def with_rows_of_metrics() -> Evaluation:
    """Eight cases in three versions, of which not all changed in everything."""
    versions, cases = ("1.14.0", "2.0.0", "2.13.0"), [case("power", n=str(number)) for number in range(8)]
    slower, faster, same = ["slower"] * 3, ["faster"], ["same"] * 4
    verdicts = {
        ("first", "2.0.0"): [*slower, *faster, *same], ("first", "2.13.0"): [*slower, *faster, *same],
        ("memory", "2.0.0"): [*slower, "slower", "slower", *faster, *same[:2]],
        ("memory", "2.13.0"): ["slower"] * len(cases),
    }  # fmt: skip
    means = {
        ("first", "2.0.0"): (1.30, 1.0, 1.7), ("first", "2.13.0"): (2.13, 1.5, 3.0),
        ("memory", "2.0.0"): (1.08, 1.02, 1.14), ("memory", "2.13.0"): (1.49, 1.48, 1.50),
    }  # fmt: skip
    ratio = {"slower": 1.5, "faster": 0.7, "same": 1.0}
    comparisons: dict[str, list] = {"first": [], "memory": []}
    for (metric, version), each in verdicts.items():
        for one, verdict in zip(cases, each, strict=True):
            pair = replace(version_pair(one, "1.14.0", version), metric=metric)
            comparisons[metric].append(comparison(pair, ratio[verdict], verdict))
    return evaluation(
        plan=plan(cases, versions),
        manifest=manifest(versions),
        arms=tuple(arm(one, version) for version in versions for one in cases),
        comparisons=tuple(
            comparison(version_pair(one, "1.14.0", version)) for version in versions[1:] for one in cases
        ),
        metrics={metric: tuple(each) for metric, each in comparisons.items()},
        means=tuple(
            mean(version, ratio, "1.14.0", metric=metric, ci_low=low, ci_high=high, cases=8)
            for (metric, version), (ratio, low, high) in means.items()
        ),
        outputs=tuple(
            OutputComparison(
                case=one, baseline=target("1.14.0"), candidate=target(version), verdict="equal within tolerance"
            )
            for version in versions[1:]
            for one in cases
        ),
    )


def rows_of_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return drawn(matrix.layout(with_rows_of_metrics(), 100), 100, monkeypatch)


def goes_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    one = case("training")
    arms = (arm(one, "2.13.0", traces_per_call=0.04), arm(one, "2.16.2", traces_per_call=1.0))
    slower = comparison(version_pair(one, "2.13.0", "2.16.2"), 10.0, "slower")
    found = evaluation(plan=plan([one], ("2.13.0", "2.16.2")), arms=arms, comparisons=(slower,))
    return drawn(matrix.layout(found, 120), 120, monkeypatch)


def leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    one, kib = case("leaky"), 2.0**10
    grows = comparison(
        replace(version_pair(one, "1.14.0", "2.0.0"), metric="leak"), None, "slower",
        difference=8 * kib, ci_low=7 * kib, ci_high=9 * kib, rounds=6,
    )  # fmt: skip
    arms = (arm(one, "1.14.0", leak=40.2 * kib), arm(one, "2.0.0", leak=48.2 * kib))
    found = evaluation(plan=plan([one], ("1.14.0", "2.0.0")), arms=arms, comparisons=(), metrics={"leak": (grows,)})
    return "\n".join(metric_sentences(found))


def first_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    cases = [case("power", n=str(number)) for number in range(5)]
    comparisons = [
        comparison(replace(version_pair(one), metric="first"), 1.1, "inconclusive", mde=mde)
        for one, mde in zip(cases, (0.2, 0.3, 0.4, 0.5, 0.6), strict=True)
    ]
    found = evaluation(plan=plan(cases), arms=tuple(map(arm, cases)), comparisons=(), metrics={"first": comparisons})
    return "\n".join(metric_sentences(found))


def other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    cases, baseline, candidate = [case("step"), case("power")], target("1.14.0"), target("2.13.0")
    differs = OutputComparison(
        case=cases[0], baseline=baseline, candidate=candidate, verdict="differs", call="fifth", difference=0.75,
        changed=1, compared=4, reason="in the fifth call",
    )  # fmt: skip
    equal = OutputComparison(case=cases[1], baseline=baseline, candidate=candidate, verdict="equal")
    found = evaluation(
        plan=plan(cases, ("1.14.0", "2.13.0")), arms=tuple(map(arm, cases)), comparisons=(), outputs=(differs, equal)
    )
    return drawn(matrix.layout(found, 200), 200, monkeypatch)


def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    weights = sketch([[1.0, 2.0]])

    def net(value: float) -> tuple[LayerOutput, ...]:
        outputs = {"a": ("Dense", 1.0), "b": ("Odd", value), "c": ("Dense", value), "net": ("Model", value)}
        return tuple(
            LayerOutput(name=name, type=kind, output=sketch([each, each]), weights=weights)
            for name, (kind, each) in outputs.items()
        )

    one = case("net")
    arms = tuple(
        ProfiledArm(case=one, target=target(version), outcome="profiled", layers=net(value))
        for version, value in (("2.0.0", 1.0), ("2.13.0", 1.073))
    )
    asked = plan([one], ("2.0.0", "2.13.0"))
    heading = Heading(
        run=asked.run, created=asked.created, engine="venv", device="cpu", host={}, targets=asked.targets,
        cases=asked.cases, calls=0, seed=1, top=8, pythons={},
    )  # fmt: skip
    return drawn(layout_profile(ProfileResult(heading=heading, arms=arms, path=tmp_path), 200), 200, monkeypatch)


def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    slower = replace(alarm(1.12), surroundings=alarm(1.12).surroundings[:1])
    before = alarm(1.30, "predict[call=predict,model=tiny,state=compiled]")
    before = replace(before, change=replace(before.change, first=date(2026, 11, 2)))
    page = "/home/me/.local/share/tfcompare/history/runs/20261122-…/report.html"
    told = compose(NightReport(night=NIGHT, opened=(slower,), recovered=(before,), page=page), "gpu-3")
    return f"Subject: {told.title}\n\n{told.text}"


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    clock, view, one = Clock(), Told(), case("python train.py")
    asked = plan([one], program=("python", "train.py"), looks=(4, 6, 8, 10, 13, 16, 20), budget_s=None)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    play(tmp_path, asked, clock.stage({one.workload: 57.0}), view=view, started=0.0)
    return "\n".join(view.lines)


def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    numbers = {"keras": "3.5.0", "optree": "0.19.1"}
    usual = lockfile.read_lock(catalog.LOCKS / "2.20.0-cpu-py3.11.txt")
    pins = [replace(pin, number=numbers.get(pin.name, pin.number)) for pin in usual]

    def resolve(lock: locking.Lock, constraints: Path, options: tuple[str, ...] = ()) -> str:
        return f"{locking.INPUTS_PREFIX}{lock.inputs}\n" + "".join(f"{lockfile.write_pin(pin)}\n" for pin in pins)

    monkeypatch.setattr(locking, "resolve_lock", resolve)
    said: list[str] = []
    provide_targets(["2.20 keras==3.5.0"], Heard(said), "cpu")
    monkeypatch.undo()
    catalog.reread()
    return "\n".join(said)


def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    asked = plan(versions=("2.15.1", "onednn-off"))
    first, second = asked.targets
    facts = {
        each: environment_facts(each, variables=variables)
        for each, variables in ((first, {}), (second, {"TF_ENABLE_ONEDNN_OPTS": "0"}))
    }
    stated = {first: {"onednn": "on"}, second: {"onednn": "off"}}
    known = replace(manifest(asked.targets), environments=facts, workers=stated)
    return drawn(Group(*table.render_differences(evaluation(plan=asked, manifest=known))), 200, monkeypatch)


def disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    one = case("power")
    run = run_folder(tmp_path / "run", plan([one]))
    for number, redone in ((2, True), (3, True), (4, False)):
        cause = "other processes kept 0.6 cores busy"
        run.record(Disturbed(case=one.label, round=number, replicates=(number,), cause=cause, redone=redone))
    run.record(finished())
    return warnings(*judge_run(run).warnings, monkeypatch=monkeypatch)


def two_speeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    key = ArmKey("epochs[tuning=on,rows=1024]", target("2.13.0"))
    return warnings(
        *check_two_speeds({key: TwoSpeeds(29.6, 63.3, 12, 60, "other")}, tuned=True), monkeypatch=monkeypatch
    )


def missing_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("orchestrator.engines.venv.interpreters.describe_broken", lambda numbers: "")
    return missing(("3.7",))


def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The answer of docs/why.md and README: two rungs, of which one matters, and a target that helps."""
    names = (
        "2.20.0+keras==3.8.0", "2.20.0+keras==3.8.0+TF_ENABLE_ONEDNN_OPTS=1",
        "2.20.0+keras==3.5.0+TF_ENABLE_ONEDNN_OPTS=1",
    )  # fmt: skip
    texts = tuple(name.replace("+", " ") for name in names)
    rungs = tuple(Rung(causes=(title,)) for title in ("TF_ENABLE_ONEDNN_OPTS none -> 1", "Keras 3.8.0 -> 3.5.0"))

    def judged(lower: int, upper: int, ratio: float, low: float, high: float, verdict: VerdictName) -> BisectFinding:
        size = "beyond" if verdict in ("slower", "faster") else None
        reason = "" if size else "too noisy: 6 rounds show slowdowns from 14% on; about 23 would show 5%"
        return BisectFinding(
            earlier=names[lower], later=names[upper], ratio=ratio, ci_low=low, ci_high=high, verdict=verdict, size=size,
            reason=reason, rounds=6,
        )  # fmt: skip

    steps = (judged(0, 1, 1.0375, 0.9524, 1.132, "inconclusive"), judged(1, 2, 91.1, 72.6, 114.2, "slower"))
    one = case("train_tiny", model="mlp", loop="train_on_batch")
    question = WhyQuestion(old=texts[0], new=texts[2], run=RunOptions(judge="cpu"), budget_s=600.0)
    state = WhyState(
        created=datetime(2026, 11, 29, tzinfo=UTC), tool="0.1.0", contract="x", host={}, sources={}, question=question,
        case=one, ladders=(LadderStep(ladder=Ladder(texts=texts, names=names, rungs=rungs), run="steps/01"),),
    )  # fmt: skip
    explanation = Explanation(
        whole=judged(0, 2, 94.4, 74.4, 120.1, "slower"),
        rungs=tuple(
            JudgedRung(rung=rung, lower=texts[at], upper=texts[at + 1], ladder=0, finding=steps[at])
            for at, rung in enumerate(rungs)
        ),
    )
    shown = WhyAnswer(WhyOutcome(state, explanation, tmp_path))
    told = {
        "functions": (
            "grown: TFE_Py_Execute (C), 628 µs -> 216 ms in a step",
            "new: TF_FinishOperation (C), 7.63 ms in a step",
        ),
        "counts": None,
        "remedies": (Remedy(names[1], texts[1], "", judged(2, 1, 0.01098, 0.00876, 0.01377, "faster"), steps[0]),),
    }
    shown.__dict__.update(told)
    return render_plain(lambda width: layout_answer(shown, width))


def saved_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table of the page, from the number of models with each verdict in each cell."""
    old, v13, v16, v20 = targets = ("2.8.4", "2.13.0", "2.16.2", "2.20.0")
    fails: dict[tuple[str, str, str], tuple[LoadedVerdict, int]] = {
        **{(old, "h5", target): ("dies", 6) for target in (v16, v20)},
        **{(old, "savedmodel", target): ("differs", 3) for target in (old, v13)},
        **{(old, "served", target): ("dies", 3) for target in (v16, v20)},
        **{(v13, "keras", target): ("dies", 10) for target in (v16, v20)},
        **{(v13, "h5", target): ("dies", count) for target, count in ((old, 3), (v16, 6), (v20, 6))},
        **{(v13, form, old): ("dies", 11) for form in ("savedmodel", "served")},
        (v13, "savedmodel", v13): ("differs", 3),
        **{(v16, "keras", target): ("dies", count) for target, count in ((v13, 10), (v16, 1), (v20, 1))},
        **{(v16, "h5", target): ("dies", count) for target, count in zip(targets, (11, 11, 6, 6), strict=True)},
        (v20, "keras", v13): ("dies", 10),
        **{(v20, "h5", target): ("dies", count) for target, count in zip(targets, (11, 11, 5, 5), strict=True)},
        **{(source, "keras", old): ("refused", 11) for source in (v13, v16, v20)},
        **{(source, "savedmodel", target): ("refused", 11) for source in (old, v13) for target in (v16, v20)},
    }
    absent = {(old, "keras"), *((source, "savedmodel") for source in (v16, v20))}
    keys = [
        (source, form) for source in targets for form in ("keras", "h5", "savedmodel") if (source, form) not in absent
    ]
    outcome = ModelsOutcome(
        question=ModelsQuestion(),
        path=folder,
        engine="venv",
        targets=targets,
        texts=targets,
        saves={(*key, model): SavedModel(ModelReply(outcome="done")) for key in keys for model in MODELS},
        loads={},
        lost={},
        seconds=295.4,
    )
    judged = [
        LoadedModel(row=row, target=target, model=model, verdict=verdict, saved=verdict != "not saved")
        for row in outcome.rows
        for target in targets
        for kind, count in [fails.get((row.source, row.format, target), ("ok", 0))]
        for lost in [2 if (row.source, row.format) in ((old, "h5"), (v13, "h5")) else 0]
        for model, verdict in zip(MODELS, ["not saved"] * lost + [kind] * count + ["ok"] * 11, strict=False)
    ]
    return render_plain(lambda width: layout_models(ModelsAnswer(outcome, tuple(judged)), width))


# What prints the blocks of each page, in their order.
PRINTED: dict[str, list[Callable[[Path, pytest.MonkeyPatch], str]]] = {
    "bisect": [search_steps, search_result],
    "history": [nights, plot_of_nights],
    "models": [saved_models],
    "metrics": [rows_of_metrics, leak, first_calls, other_results, layers],
    "nightly": [message],
    "own-program": [program],
    "targets": [moved, changed],
    "README": [answer],
    "why": [answer, goes_with],
    "troubleshooting": [missing_python, disturbed, two_speeds],
}


def blocks_of(page: Path) -> list[str]:
    return [
        block
        for block in printed_blocks(page.read_text())
        if page.stem not in TESTED_ELSEWHERE and not NOT_PRINTED.match(block)
    ]


BLOCKS = {page.stem: found for page in PAGES if (found := blocks_of(page))}


def test_each_block_of_the_pages_is_compared():
    assert {page: len(found) for page, found in BLOCKS.items()} == {page: len(each) for page, each in PRINTED.items()}


@pytest.mark.parametrize(
    ("block", "render"),
    [
        pytest.param(block, render, id=f"{page}-{render.__name__}")
        for page, found in BLOCKS.items()
        for block, render in zip(found, PRINTED.get(page, []), strict=False)
    ],
)
def test_a_page_shows_what_is_printed(
    block: str,
    render: Callable[[Path, pytest.MonkeyPatch], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    printed = render(tmp_path, monkeypatch)
    assert is_part(block, printed), f"{block}\n--- printed:\n{printed}"


def test_a_block_that_differs_in_a_digit_or_lacks_a_line_is_none():
    printed = "a 1.30x\nb 1.31x\nc 1.32x\n"
    assert is_part("a 1.30x\nb 1.31x\n", printed)
    assert is_part("a 1.30x\n...\nc 1.32x\n", printed)
    assert not is_part("a 1.30x\nb 1.30x\n", printed)
    assert not is_part("a 1.30x\nc 1.32x\n", printed)
    assert not is_part("1.31x\nc 1.32x\n", printed)


def test_indented_and_fenced_blocks_are_found_and_code_is_not():
    page = "Text\n\n    one\n\n    two\n\nmore\n\n```\nthree\n```\n\n```python\nfour\n\n    five\n```\n\n    six\n"
    assert printed_blocks(page) == ["three\n", "one\n\ntwo\n", "six\n"]

"""Runs of the study's training loops, made up from a few factors: what a table of the study is drawn from in tests."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator.model import ArmResult, Case, Comparison, Drift, Evaluation
from orchestrator.plan.pairs import plan_pairs
from tests.support.builders import (
    arm,
    case,
    case_pair,
    comparison,
    manifest,
    plan,
    targets,
    unmeasured,
    version_pair,
    workload,
)

TF1, TF2, LATER = "1.14.0", "2.0.0", "2.13.0"
LOOP = workload(
    "train_loop",
    params=dict.fromkeys(("loop", "api", "mode", "input", "model", "data"), ()),
    comparisons={"mode": "eager"},
)
SIZES = tuple(
    (model, data)
    for model in ("small", "medium", "large")
    for data in ("small", "medium", "large")
    if (model, data) != ("large", "small")
)

# How long a graph step of a size takes in the first version, in ms.
MODEL_MS = {"small": 5.4, "medium": 61.0, "large": 990.0}
DATA_MS = {"small": 1.0, "medium": 7.3, "large": 88.0}
# What eager adds to a step: much to a short one, nothing to a long one.
OVERHEAD_MS = {TF1: 0.8, TF2: 17.0, LATER: 24.0}
SLOWER = {TF1: 1.0, TF2: 1.08, LATER: 0.84}

NO_EAGER = "Standalone keras 2.2.5 is made of placeholders, which do not exist in eager mode."
NO_KERAS = "keras is the same package as tf.keras from TensorFlow 2.6 on: there is nothing to compare."
KILLED = "killed by SIGKILL; often the kernel, out of memory"
NOISY = "too noisy: 6 rounds show slowdowns from 12% on; about 31 would show 5%"
CHANCE = "not significant after correcting for 96 comparisons"


def loop(model: str = "small", data: str = "small", **changes: str) -> Case:
    values = {"loop": "fit", "api": "tf.keras", "mode": "eager", "input": "numpy", "model": model, "data": data}
    return case("train_loop", **{**values, **changes})


def study(versions: Sequence[str] = (TF1, TF2, LATER)) -> Evaluation:
    """Four blocks: one whole, with an arm that died early and one late; one with dots; one half and one wholly
    refused."""
    small = [size for size in SIZES if "large" not in size]
    cases = [
        *_block(SIZES, loop="fit"),
        *_block(small, loop="train_on_batch"),
        *_block(small, loop="train_on_batch", api="keras"),
        *_block(small, loop="fit", api="keras", input="dataset"),
    ]
    return made(cases, [_measured(of, version) for of in cases for version in versions], versions)


def made(cases: Sequence[Case], arms: Iterable[ArmResult], versions: Sequence[str] = (TF1, TF2)) -> Evaluation:
    """A run of these arms, each comparison judged by a rule of thumb."""
    pairs = plan_pairs(cases, targets(versions), {"train_loop": LOOP, "power": workload()})
    arms = tuple(arms)
    by_name = {arm.key: arm for arm in arms}
    return Evaluation(
        plan=plan(cases, versions, pairs=pairs, suite="studies"),
        manifest=manifest(versions),
        arms=arms,
        comparisons=tuple(_judged(pair, *(by_name[name] for name in pair.arms)) for pair in pairs),
        warnings=(),
    )


def one_cell(of: Comparison, *, ms: tuple[float, float] = (10.0, 36.0)) -> Evaluation:
    """A run of two arms and this comparison between them, whichever kind it is."""
    cases = (loop(mode="eager"),) if of.pair.kind == "target" else (loop(mode="eager"), loop(mode="graph"))
    (baseline, old), (candidate, new) = of.pair.arms
    named = {one.label: one for one in cases}
    return Evaluation(
        plan=plan(cases, tuple(dict.fromkeys((old, new))), pairs=(of.pair,)),
        manifest=manifest((old, new)),
        arms=(arm(named[baseline], old, time=ms[0]), arm(named[candidate], new, time=ms[1])),
        comparisons=(of,),
        warnings=(),
    )


def versions_apart(ratio: float | None = 3.6, verdict: str = "slower", reason: str = "", **changes) -> Comparison:
    return comparison(version_pair(loop(mode="eager"), TF1, TF2), ratio, verdict, reason, **changes)


def modes_apart(ratio: float | None = 0.25, verdict: str = "faster", reason: str = "", **changes) -> Comparison:
    return comparison(case_pair(loop(mode="eager"), loop(mode="graph"), TF2), ratio, verdict, reason, **changes)


def poisoned(text: str) -> Evaluation:
    """This text wherever a plan, a log or a machine may put one that the tables show."""
    cases = [loop(f"model{text}", f"data{text}", api=f"api{text}", mode=mode) for mode in ("graph", "eager")]
    other = [loop("other", f"data{text}", api=f"api{text}", mode=mode) for mode in ("graph", "eager")]
    new = f"2{text}"
    arms = [
        *(arm(of, version) for of in cases for version in (TF1, new)),
        unmeasured(other[0], TF1, "refused", f"refused{text}"),
        arm(other[0], new),
        arm(other[1], TF1),
        unmeasured(other[1], new, "died", f"died{text}"),
    ]
    both = made([*cases, *other], arms, (TF1, new))
    odd = tuple(replace(one, ci_low=1.2, verdict="inconclusive", reason=f"noisy{text}") for one in both.comparisons)
    return replace(
        both,
        plan=replace(both.plan, run=f"run{text}", device=f"cpu{text}"),
        manifest=manifest((TF1, new), host={"cpu": f"CPU{text}", "usable_cores": 2}),
        comparisons=odd,
        warnings=(f"warned{text}",),
        broken=(f"broken{text}",),
    )


HOSTILE = "[red]\x1b[2J\r\n 9.99 ms  1.00x\u202e[/red] :boom: " + "w" * 90


def hostile() -> Evaluation:
    """Reasons and warnings that would forge rows, steer a terminal, be read as markup, or push figures aside."""
    cases = [loop(model, mode=mode) for mode in ("graph", "eager") for model in ("small", "medium")]
    graph, medium_graph, eager, medium_eager = cases
    arms = [
        arm(graph, TF1),
        arm(graph, TF2, time=12.0),
        unmeasured(medium_graph, TF1, "refused", f"refused {HOSTILE}"),
        arm(medium_graph, TF2),
        arm(eager, TF1, outcome="died", reason=f"died late {HOSTILE}", rounds=2),
        arm(eager, TF2, time=36.0),
        arm(medium_eager, TF1),
        unmeasured(medium_eager, TF2, "died", f"died {HOSTILE}"),
    ]
    both = made(cases, arms)
    noisy = tuple(replace(one, verdict="inconclusive", reason=f"noisy {HOSTILE}") for one in both.comparisons)
    return replace(both, comparisons=noisy, warnings=(f"warned {HOSTILE}",))


def _block(sizes: Iterable[tuple[str, str]], **changes: str) -> list[Case]:
    return [loop(*size, mode=mode, **changes) for mode in ("graph", "eager") for size in sizes]


def _measured(of: Case, version: str) -> ArmResult:
    params = dict(of.params)
    size = params["model"], params["data"]
    if params["api"] == "keras" and version == LATER:
        return unmeasured(of, version, "refused", NO_KERAS)
    if params["input"] == "dataset":
        return unmeasured(of, version, "refused", f"Standalone keras in {version} takes no tf.data datasets.")
    if params["api"] == "keras" and version == TF1 and params["mode"] == "eager":
        return unmeasured(of, version, "refused", NO_EAGER)
    if size == ("large", "large") and version == TF2 and params["mode"] == "eager":
        return unmeasured(of, version, "died", KILLED)
    ms = MODEL_MS[size[0]] * DATA_MS[size[1]] * SLOWER[version]
    if params["mode"] == "eager":
        ms += OVERHEAD_MS[version]
    if size == ("large", "medium") and version == TF2 and params["mode"] == "graph":
        return arm(of, version, time=ms, outcome="died", reason=KILLED, rounds=3)
    drift = Drift(rise=math.log(1.12)) if size == ("medium", "small") and version == LATER else None
    return arm(of, version, time=ms, drift=drift)


def _judged(pair, baseline: ArmResult, candidate: ArmResult) -> Comparison:
    for one in (baseline, candidate):
        if one.time_ms is None:
            return comparison(pair, None, "inconclusive", one.reason)
    ratio = candidate.time_ms / baseline.time_ms
    for one in (baseline, candidate):
        if one.outcome == "died":
            return comparison(pair, ratio, "inconclusive", f"{one.target} died after {one.rounds} rounds: {one.reason}")
    if abs(math.log(ratio)) < math.log(1.01):
        return comparison(pair, ratio, "same")
    if abs(math.log(ratio)) < math.log(1.1):
        return comparison(pair, ratio, "inconclusive", NOISY, ci_low=ratio * 0.88, ci_high=ratio * 1.13)
    if baseline.drift or candidate.drift:
        return comparison(pair, ratio, "inconclusive", CHANCE)
    return comparison(pair, ratio, "slower" if ratio > 1 else "faster")

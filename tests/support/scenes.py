"""Comparisons that reports are drawn from in tests: one of everything, and some that fight back."""

import math
from dataclasses import replace

from orchestrator.model import Case, Drift, EnvironmentFacts, Evaluation, OutputComparison, Target, TargetPair
from orchestrator.plan.pairs import plan_pairs
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    comparison,
    environment_facts,
    manifest,
    mean,
    plan,
    targets,
    unmeasured,
    workload,
)

VERSIONS = ("1.14.0", "2.0.0", "2.13.0")
LOOP = workload("train_loop", params={"loop": (), "mode": (), "model": ()}, comparisons={"mode": "eager"})
POWER = workload("power", params={"style": ()})

FIT_GRAPH = case("train_loop", loop="fit", mode="graph", model="small")
FIT_EAGER = case("train_loop", loop="fit", mode="eager", model="small")
POWER_JIT = case("power", style="jit")


def everything() -> Evaluation:
    """All outcomes and verdicts, shared notes, times from microseconds to seconds, ratios from 0.003 to 250."""
    cases = (FIT_GRAPH, FIT_EAGER, POWER_JIT)
    pairs = plan_pairs(cases, targets(VERSIONS), {"train_loop": LOOP, "power": POWER})
    by_arms = {pair.arms: pair for pair in pairs}
    noisy = "too noisy: 6 rounds show slowdowns from 12% on; about 31 would show 5%"
    killed = "killed by SIGKILL; often the kernel, out of memory"
    jit = "tf.function has no jit switch before TensorFlow 2.1."
    arms = (
        arm(FIT_GRAPH, "1.14.0", time=5.41, second_ms=5.92, train_s=0.61),
        arm(FIT_GRAPH, "2.0.0", time=5.93, second_ms=6.31, train_s=0.68),
        arm(
            FIT_GRAPH,
            "2.13.0",
            time=1353.0,
            second_ms=1401.0,
            train_s=152.0,
            drift=Drift(rise=math.log(1.12)),
            memory=552 * 2.0**20,
        ),
        arm(FIT_EAGER, "1.14.0", time=6.2, second_ms=6.6, train_s=0.72),
        arm(FIT_EAGER, "2.0.0", time=22.6, second_ms=24.1, train_s=2.4, outcome="died", reason=killed, rounds=3),
        arm(FIT_EAGER, "2.13.0", time=0.0186, second_ms=0.0312, build=4100000.0, train_s=0.052),
        unmeasured(POWER_JIT, "1.14.0", "refused", jit),
        unmeasured(POWER_JIT, "2.0.0", "refused", jit),
        arm(POWER_JIT, "2.13.0", time=0.25, second_ms=0.31, train_s=0.08),
    )
    judged = {
        (FIT_GRAPH.label, "2.0.0"): (1.096, "inconclusive", noisy),
        (FIT_GRAPH.label, "2.13.0"): (250.1, "slower", ""),
        (FIT_EAGER.label, "2.0.0"): (3.645, "inconclusive", "2.0.0 died after 3 rounds"),
        (FIT_EAGER.label, "2.13.0"): (0.003, "faster", ""),
        (POWER_JIT.label, "2.0.0"): (None, "inconclusive", "tf.function has no jit switch before TensorFlow 2.1."),
        (POWER_JIT.label, "2.13.0"): (None, "inconclusive", "tf.function has no jit switch before TensorFlow 2.1."),
    }
    found = [comparison(pair, *judged[pair.arms[1]]) for pair in pairs if pair.kind == "target"]
    inside = {"1.14.0": (0.873, "faster", ""), "2.0.0": (12.34, "inconclusive", noisy), "2.13.0": (1.002, "same", "")}
    for version, values in inside.items():
        found.append(comparison(by_arms[(FIT_EAGER.label, version), (FIT_GRAPH.label, version)], *values))
    return Evaluation(
        plan=plan(cases, VERSIONS, pairs=pairs),
        manifest=manifest(
            VERSIONS,
            environments={version: environment(version) for version in targets(VERSIONS)},
            workers={version: {"onednn": version.name > "2.1"} for version in targets(VERSIONS)},
        ),
        arms=arms,
        comparisons=tuple(found),
        warnings=("the run was cut short; what it measured is here",),
        broken=(),
        metrics={
            "memory": (
                comparison(in_memory(FIT_GRAPH, "2.0.0"), 1.02, "same"),
                comparison(in_memory(FIT_GRAPH, "2.13.0"), 1.84, "slower"),
                comparison(in_memory(FIT_EAGER, "2.13.0"), 1.2, "inconclusive", noisy),
            )
        },
        outputs=(
            results(FIT_GRAPH, "2.0.0", verdict="equal within tolerance", difference=2.1e-7, ulps=1.8, floor=0.0),
            results(
                FIT_GRAPH,
                "2.13.0",
                verdict="differs",
                difference=0.031,
                ulps=260000.0,
                floor=1e-9,
                changed=3,
                compared=32,
                reason="3 of 32 values differ",
            ),
            results(FIT_EAGER, "2.13.0", verdict="not comparable", reason="its results were not kept"),
        ),
        means=(mean("2.0.0", 1.999, "1.14.0"), mean("2.13.0", 0.866, "1.14.0")),
    )


def in_memory(of: Case, candidate: str) -> TargetPair:
    pair = TargetPair(case=of, baseline=Target("1.14.0"), candidate=Target(candidate))
    return replace(pair, metric="memory", margin=0.05)


def results(of: Case, candidate: str, **found: object) -> OutputComparison:
    return OutputComparison(case=of, baseline=Target("1.14.0"), candidate=Target(candidate), **found)


def environment(version: Target) -> EnvironmentFacts:
    """One of the new Python and numpy, or one of the old ones."""
    python, numpy = ("3.11.7", "1.24.3") if version.name > "2.1" else ("3.7.16", "1.16.6")
    return environment_facts(
        version=str(version),
        kind="venv",
        identity="x",
        lock="y",
        python=python,
        packages={"numpy": numpy, "six": "1.16"},
    )


def exploratory() -> Evaluation:
    """One comparison as it was judged in time, one that went on after the error was spent."""
    tiny, large = (case("predict", model=model) for model in ("tiny", "large"))
    asked = plan([tiny, large])
    noisy = "too noisy: 26 rounds show slowdowns from 8% on; about 60 would show 5%"
    return Evaluation(
        plan=asked,
        manifest=manifest(),
        arms=tuple(arm(of, version) for of in asked.cases for version in asked.targets),
        comparisons=(
            comparison(asked.pairs[0], 1.31, "slower", exploratory=True, sign_flip_p=0.0005),
            comparison(asked.pairs[1], 1.04, "inconclusive", noisy, exploratory=True),
        ),
        warnings=(),
        means=(mean(NEW, 1.167),),
    )


def poisoned(text: str) -> Evaluation:
    """This text wherever a workload, a log, an environment or a machine may put one."""
    cases = (
        case(f"w{text}", **{f"p{text}": f"a{text}", "shared": text}),
        case(f"w{text}", **{f"p{text}": "b", "shared": text}),
    )
    asked = plan(cases)
    pairs = (*asked.pairs, case_pair(*cases))
    return Evaluation(
        plan=replace(asked, pairs=pairs, run=f"run{text}", device=f"cpu{text}"),
        manifest=manifest(host={"cpu": f"CPU{text}", "usable_cores": 2}),
        arms=(
            arm(cases[0], OLD),
            arm(cases[0], NEW),
            unmeasured(cases[1], OLD, "refused", f"refused{text}"),
            arm(cases[1], NEW, outcome="died", reason=f"died{text}"),
        ),
        comparisons=tuple(comparison(pair, 1.0, "inconclusive", f"noisy{text}") for pair in (pairs[0], pairs[-1])),
        warnings=(f"warned{text}",),
        broken=(f"broken{text}",),
    )


def hostile() -> Evaluation:
    """Values, reasons and warnings that look like rich's markup, and others longer than any terminal."""
    markup = case("mine", text="[red]x[/red]", other=":smile:")
    long = case("mine", text="y" * 90, other="z" * 90)
    cases = (markup, long)
    both = everything()
    arms = (
        arm(markup, "1.14.0"),
        arm(markup, "2.0.0", time=20.0),
        arm(long, "1.14.0"),
        unmeasured(long, "2.0.0", "died", "[bold]boom[/bold] " + "w" * 200),
    )
    asked = plan(cases, ("1.14.0", "2.0.0"))
    reason = "[link=x]too noisy[/link]"
    comparisons = (
        comparison(asked.pairs[0], 2.0, "inconclusive", reason),
        comparison(asked.pairs[1], None, "inconclusive", "died"),
    )
    return replace(
        both,
        plan=asked,
        arms=arms,
        comparisons=comparisons,
        warnings=("[/] :warning: " + "v" * 200,),
        metrics={"memory": (comparison(in_memory(markup, "2.0.0"), 2.0, "slower"),)},
        means=(),
        outputs=(results(markup, "2.0.0", verdict="differs", reason="[red]float32[/red] " + "u" * 200),),
    )


def one_case(of: Case) -> Evaluation:
    asked = plan([of])
    return Evaluation(
        plan=asked,
        manifest=manifest(),
        arms=tuple(arm(of, version) for version in asked.targets),
        comparisons=tuple(comparison(pair) for pair in asked.pairs),
        warnings=(),
    )

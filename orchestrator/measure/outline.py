"""The outline of a planned run in one line: cases, versions, rounds, minutes and memory."""

from orchestrator.machine.host import moment
from orchestrator.measure.capacity import REPLICATE_MB, WORKER_MB, OpenAtOnce, open_at_once, read_capacity
from orchestrator.measure.rotation import MATRIX_FROM
from orchestrator.plan.pairs import TREND_FROM, has_single_call_visits
from orchestrator.plan.request import PlannedRun
from orchestrator.stats.calibrate import ONCE_SHARE
from orchestrator.stats.looks import FEWEST_ROUNDS, count_fewest
from orchestrator.stats.power import FOUND_ALONE, find_share_found
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_minutes

# A replicate takes this long to build, warm up and make its calls, as measured on two cores with the quick suite. A
# separate process or container imports TensorFlow first.
REPLICATE_S, ISOLATED_S = 0.8, 3.0
# A version's worker starts in each round; three together took 2.5 to 3 s on two cores.
START_S = 1.0
# On a GPU, each replicate starts CUDA and its libraries, and a worker imports a larger TensorFlow. On an H100, a round
# of 6 arms in 2 targets took 15 to 18 s, and one of 18 arms in 3 targets 33 to 36 s.
GPU_REPLICATE_S, GPU_START_S = 1.5, 3.3


def outline(planned: PlannedRun, engine: str) -> str:
    selection, claims, looks = planned.selection, planned.options.claims, planned.looks
    rounds = f"up to {looks[-1]} rounds" if len(looks) > 1 else f"{looks[0]} rounds{note_too_few(looks)}"
    rounds += f" ({planned.most_rounds} where they are noisy)" if planned.most_rounds else ""
    arms = (
        f"{format_count(len(claims), 'claim')}, {len(planned.arms())} arms in"
        if claims
        else f"{format_count(len(selection.cases), 'case')} x"
    )
    versions = format_count(len(selection.targets), "version")
    what = f"plan: {arms} {versions}, {rounds}, {_describe_time(planned, engine)}"
    return f"{what}; {find_open_at_once(planned, engine)}{_describe_memory(planned, engine)}{_describe_power(planned)}"


def _describe_power(planned: PlannedRun) -> str:
    """Describe what a run of many targets can show, given that its comparisons share the allowed error."""
    count = sum(pair.metric == "time" and pair.kind == "target" for pair in planned.selection.pairs)
    # Claims may compare results alone.
    if count < 2 or len(planned.selection.targets) < MATRIX_FROM:
        return ""
    return (
        f"; {count} comparisons share the allowed error, so a slowdown that would be found in {FOUND_ALONE:.0%} of "
        f"runs if it were compared alone is found in {find_share_found(count):.0%}"
    )


def note_too_few(looks: tuple[int, ...]) -> str:
    """Return a note that these rounds are too few for a verdict and how many it takes, or ''."""
    fewest = count_fewest(looks)
    return f" (too few for a verdict, which takes {fewest})" if looks[-1] < fewest else ""


def find_open_at_once(planned: PlannedRun, engine: str) -> OpenAtOnce:
    plan = planned.freeze(engine)
    return open_at_once(plan, plan.cases, read_capacity(plan))


def _describe_time(planned: PlannedRun, engine: str) -> str:
    """Say how long the run takes at most or, without a budget, about how long.

    A replicate takes from milliseconds to half a minute, and a program can take any time; only the pilot shows it.
    """
    ready = "once the environments are ready"
    if planned.selection.budget_s:
        return f"at most {format_minutes(planned.selection.budget_s)} min {ready}"
    if planned.options.program:
        limit = ", until all comparisons are decided or for 15 min" if len(planned.looks) > 1 else ""
        return f"each with one run of the program per version (the first shows how long it takes){limit}"
    arms, plan = planned.arms(), planned.freeze(engine)
    replicate_s, start_s = (GPU_REPLICATE_S, GPU_START_S) if plan.device == "gpu" else (REPLICATE_S, START_S)
    round_s = len(arms) * (ISOLATED_S - REPLICATE_S + replicate_s)
    if plan.isolation == "fork":
        round_s = len(arms) * replicate_s + len({target for _, target in arms}) * start_s
    once_s = len(arms) * replicate_s * ONCE_SHARE if has_single_call_visits(plan) else 0.0
    took = (
        (looks + 1) * round_s + (looks if plan.decides else min(looks, FEWEST_ROUNDS)) * once_s
        for looks in (planned.looks[0], planned.looks[-1])
    )
    return f"about {' to '.join(dict.fromkeys(map(format_minutes, took)))} min {ready}"


def _describe_memory(planned: PlannedRun, engine: str) -> str:
    """Estimate the memory that many versions take at the same time. Return '' for a few versions."""
    resident = len({target for _, target in planned.arms()})
    if planned.isolate(engine) != "fork" or resident < TREND_FROM:
        return ""
    needed_gb, available_mb = resident * (WORKER_MB + REPLICATE_MB) / 1024, moment()["available_mb"]
    estimate = f"; one worker per version and its replicate take about {needed_gb:.0f} GB of memory"
    if not isinstance(available_mb, int) or needed_gb * 1024 < available_mb:
        return estimate
    return f"{estimate}, but only {available_mb / 1024:.0f} GB are free: measure fewer versions at a time"

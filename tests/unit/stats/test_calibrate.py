"""How a pilot becomes an effort: more calls where they scatter or where replicates are dear, never without bound."""

import numpy as np
import pytest

from orchestrator.stats.calibrate import (
    BURST_S,
    FEWEST_CALLS,
    LEAST_CALLS_S,
    LEAST_SHARE,
    MOST_CALLS,
    MOST_WARMUP,
    PATIENT_CALLS_S,
    REPLICATE_CALLS_S,
    Effort,
    Pilot,
    calls_to_settle,
    effort,
    efforts,
    scatter,
)

MS = 1_000_000


def pilot(call_ms: float = 5.0, *, open_s: float = 0.3, spread: float = 0.1, calls: int = 40) -> Pilot:
    draw = np.random.default_rng(1).normal(0, spread, calls)
    return Pilot(open_s, tuple(int(call_ms * MS * value) for value in np.exp(draw)))


def timed(pilots: list[Pilot]) -> int:
    found = effort(pilots)
    return found.bursts * found.calls


def test_scattered_calls_are_made_more_often() -> None:
    assert timed([pilot(spread=0.02)]) < timed([pilot(spread=0.3)]) < timed([pilot(spread=0.6)])


def test_cheap_replicates_still_time_calls_for_a_while() -> None:
    """Calls of a moment are slowed alike: where they cost little, more of them average more time."""
    cheap, dear = pilot(1.0, open_s=0.01, spread=0.0), pilot(1.0, open_s=0.6, spread=0.0)
    assert timed([cheap]) * cheap.call_s >= LEAST_CALLS_S
    assert timed([dear]) * dear.call_s >= LEAST_SHARE * dear.open_s


def test_what_needs_patience_times_calls_for_longer_and_never_beyond_the_bounds() -> None:
    quick, long = pilot(10.0, open_s=0.3, spread=0.02), Pilot(14.0, (5_000 * MS,))
    found = efforts({"same": [quick], "other": [quick], "long": [long]}, patient={"same", "long"})
    assert found["other"] == effort([quick])
    assert found["same"].bursts * found["same"].calls * quick.call_s >= PATIENT_CALLS_S
    assert found["long"] == effort([long])
    assert efforts({"same": [quick]}, 0.0, {"same"}) == efforts({"same": [quick]}, 0.0)


def test_dear_replicates_make_more_calls() -> None:
    assert timed([pilot(open_s=0.1)]) < timed([pilot(open_s=3.0)])


def test_kalibera_and_jones_rule_holds_between_the_bounds() -> None:
    one = pilot(5.0, open_s=0.5, spread=0.5)
    best = np.sqrt(0.5 / one.call_s) * scatter(one.calls_ns) / 0.05
    found = effort([one])
    assert timed([one]) == pytest.approx(best, abs=found.bursts)


@pytest.mark.parametrize("call_ms", [0.1, 1.0, 2.0, 5.0, 20.0])
def test_bursts_are_many_and_short_and_go_forth_and_back(call_ms: float) -> None:
    found = effort([pilot(call_ms)])
    assert found.bursts % 2 == 0
    assert found.calls >= 3
    assert found.calls * call_ms <= max(1.5 * BURST_S * 1e3, 4 * call_ms)


def test_a_quick_arm_beside_a_slow_one_has_bursts_that_outlast_cold_caches() -> None:
    assert effort([pilot(0.4), pilot(30.0)]).calls > effort([pilot(15.0), pilot(15.4)]).calls


def test_a_slow_arm_makes_the_calls_of_all_dear() -> None:
    """All arms make the same calls, so what a call costs is what all arms pay for it."""
    quick, slow = pilot(1.0), pilot(50.0)
    assert effort([quick, slow]) == effort([slow, quick])
    assert timed([slow]) <= timed([quick, slow]) < timed([quick])


def test_calls_of_seconds_alternate_without_warm_up_for_as_long_as_building_took() -> None:
    """Opening is two calls besides building."""
    assert effort([Pilot(14.0, (5_000 * MS,))]) == Effort(warmup=0, bursts=1, calls=1)
    assert effort([Pilot(31.0, (5_000 * MS,))]) == Effort(warmup=0, bursts=4, calls=1)
    short = efforts({"a": [Pilot(31.0, (5_000 * MS,))]}, round_s=31.0)
    assert short == {"a": Effort(warmup=0, bursts=1, calls=1)}


@pytest.mark.parametrize("call_ms", [0.00005, 0.01, 1.0, 100.0, 1000.0])
def test_effort_is_bounded_in_calls_and_in_time(call_ms: float) -> None:
    found = effort([pilot(call_ms, open_s=2.0, spread=0.5)])
    assert 1 <= found.bursts * found.calls <= MOST_CALLS + found.bursts
    assert found.bursts * found.calls * call_ms / 1e3 <= REPLICATE_CALLS_S * 3
    assert found.warmup <= MOST_WARMUP


def test_no_pilot_is_the_least_effort() -> None:
    assert effort([]) == Effort(0, 1, 1)


def test_warm_up_ends_where_three_calls_are_like_the_later_half() -> None:
    assert calls_to_settle([50, 40, 30, 20, *[10] * 20]) == 4
    assert calls_to_settle([10] * 24) == 0


def test_one_spike_is_no_warm_up_and_no_scatter() -> None:
    assert calls_to_settle([*[10] * 10, 500, *[10] * 13]) == 0
    assert scatter([*[10] * 10, 500, *[10] * 13]) == 0


def test_calls_that_never_settle_are_all_warm_up() -> None:
    assert calls_to_settle([int(10 * 1.3**place) for place in range(8)]) > 0


def test_where_time_is_short_calls_give_way_before_rounds_do() -> None:
    """Six rounds of a second each, of which opening takes most; nothing changes where a round may take longer."""
    pilots = {"a": [pilot(5.0, open_s=0.2)] * 2, "b": [pilot(20.0, open_s=0.3)] * 2}
    free, ample, short, none = (efforts(pilots, round_s) for round_s in (None, 100.0, 1.2, 0.0))
    assert free == ample
    assert all(short[case].in_all < free[case].in_all for case in pilots)
    assert {effort.bursts * effort.calls for effort in none.values()} == {FEWEST_CALLS}


def test_what_a_short_round_leaves_for_calls_is_used() -> None:
    pilots = {"a": [pilot(5.0, open_s=0.2, spread=0.6)] * 3}
    found = efforts(pilots, 1.2)["a"]
    assert 0.3 < sum(found.in_all * one.call_s for one in pilots["a"]) < 0.8

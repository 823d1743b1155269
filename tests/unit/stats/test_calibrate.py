"""How a pilot becomes an effort: enough moments for every arm, more where they scatter, and never without bound."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats import calibrate
from orchestrator.stats.calibrate import (
    BETWEEN,
    BURST_S,
    FEWEST_BURSTS,
    FEWEST_SLOW_BURSTS,
    LEAD_IN_CALLS,
    LEAD_IN_S,
    MOST_BURSTS,
    MOST_IN_BURST,
    MOST_SLOW_BURSTS,
    MOST_WARMUP,
    SLOW_BURSTS_S,
    Effort,
    Pilot,
    align_efforts,
    calls_to_settle,
    effort,
    error_of_bursts,
    first_effort,
    replicate_s,
    scatter,
)
from workloads import replicate

MS = 1_000_000


def pilot(call_ms: float = 5.0, *, open_s: float = 0.3, spread: float = 0.02, bursts: int = 8) -> Pilot:
    """A pilot whose bursts, and not the calls inside them, differ by this spread."""
    levels = np.exp(spread * stats.norm.ppf((np.arange(bursts) + 0.5) / bursts))
    each = max(1, math.ceil(8 / call_ms)) if call_ms < 100 else 1
    return Pilot(open_s, tuple((max(int(call_ms * MS * level), 1),) * min(each, 50) for level in levels))


@pytest.mark.parametrize("call_ms", [0.01, 0.4, 1.0, 7.0, 8.0, 30.0, 92.0, 99.0])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_calls_below_a_tenth_of_a_second_get_at_least_eight_bursts_of_eight_milliseconds(call_ms: float, spread: float):
    found = effort(pilot(call_ms, spread=spread))
    assert FEWEST_BURSTS <= found.bursts <= MOST_BURSTS
    assert found.bursts % 2 == 0
    assert found.calls * pilot(call_ms, spread=spread).call_s >= BURST_S


@pytest.mark.parametrize(("call_s", "bursts"), [(0.1, 8), (0.125, 8), (0.2, 5), (0.3, 3), (1.0, 3), (5.2, 3)])
def test_slower_calls_are_bursts_of_their_own_as_many_as_fit_into_a_second(call_s: float, bursts: int):
    assert effort(Pilot(2.0, ((int(call_s * 1e9),),) * 4)) == Effort(warmup=0, bursts=bursts, calls=1)
    assert FEWEST_SLOW_BURSTS <= bursts <= max(MOST_SLOW_BURSTS, SLOW_BURSTS_S / call_s)


@pytest.mark.parametrize(
    ("open_s", "calls_ms", "bursts"),
    [
        pytest.param(8.0, [200, 201, 199, 200, 202], 5, id="calls alike"),
        pytest.param(8.0, [206, 330, 205, 207, 331], 19, id="two speeds"),
        pytest.param(8.0, [206, 207, 205, 208, 331], 16, id="two speeds, one of them rare"),
        pytest.param(3.0, [206, 330, 205, 207, 331], 7, id="no longer than opening takes"),
        pytest.param(0.5, [206, 330, 205, 207, 331], 4, id="cheap to open"),
        pytest.param(60.0, [5200, 9000, 5200], 11, id="long calls"),
    ],
)
def test_slow_calls_that_scatter_are_made_more_often(open_s: float, calls_ms: list[int], bursts: int):
    found = effort(Pilot(open_s, tuple((call * MS,) for call in calls_ms)))
    assert (found.bursts, found.calls) == (bursts, 1)


def test_each_arm_of_a_case_has_its_own_calls():
    quick, slow = effort(pilot(0.6)), effort(pilot(58.0))
    assert (quick.calls, slow.calls) == (14, 1)
    assert min(quick.bursts, slow.bursts) >= FEWEST_BURSTS


def test_scattered_bursts_are_made_more_often():
    few, more, most = (effort(pilot(spread=spread)).bursts for spread in (0.0, 0.15, 0.5))
    assert few == FEWEST_BURSTS < more < MOST_BURSTS == most


def test_dear_replicates_make_more_bursts():
    assert effort(pilot(open_s=0.05, spread=0.15)).bursts < effort(pilot(open_s=1.0, spread=0.15)).bursts


def test_kalibera_and_jones_rule_holds_between_the_bounds():
    """It is fed with how bursts differ, and not with how calls do."""
    dear = pilot(5.0, open_s=0.5, spread=0.15)
    burst_s = (LEAD_IN_CALLS + math.ceil(BURST_S / dear.call_s)) * dear.call_s
    best = math.sqrt(0.5 / burst_s) * scatter([burst[0] for burst in dear.bursts_ns]) / BETWEEN
    assert FEWEST_BURSTS < best < MOST_BURSTS
    assert effort(dear).bursts == pytest.approx(best, abs=2)


def test_what_is_said_to_be_the_same_takes_as_many_bursts_as_any():
    assert effort(pilot(), patient=True).bursts == first_effort(0.005, patient=True).bursts == MOST_BURSTS
    slow = Pilot(2.0, ((200 * MS,),) * 4)
    assert effort(slow, patient=True) == effort(slow)


def test_arms_that_are_compared_do_the_same():
    """A replicate still gets quicker while it is timed: the arm with more calls would seem faster."""
    efforts = {"a": Effort(0, 16, 3), "b": Effort(6, 8, 2)}
    assert align_efforts(efforts, {"a": 0.0030, "b": 0.0042}) == dict.fromkeys("ab", Effort(6, 16, 3))
    assert align_efforts({}, {}) == {}


def test_arms_of_another_speed_have_their_own_calls_and_the_same_bursts_and_warm_up():
    efforts = {"slow": Effort(2, 8, 1), "quick": Effort(0, 12, 80), "nearly": Effort(0, 8, 60)}
    aligned = align_efforts(efforts, {"slow": 0.03, "quick": 0.0001, "nearly": 0.000133})
    assert aligned == {"slow": Effort(2, 12, 1), "quick": Effort(2, 12, 80), "nearly": Effort(2, 12, 80)}
    assert list(aligned) == list(efforts)


def test_an_arm_makes_as_many_calls_as_percentiles_need():
    usual = {"a": effort(pilot())}
    [many] = align_efforts(usual, {"a": pilot().call_s}, 1000).values()
    assert (many.warmup, many.bursts) == (usual["a"].warmup, usual["a"].bursts)
    assert many.calls > usual["a"].calls
    assert many.bursts * many.calls >= 1000
    # A slow arm would take minutes.
    slow = {"a": effort(pilot(150.0))}
    assert align_efforts(slow, {"a": 0.15}, 1000) == slow


@pytest.mark.parametrize("least_calls", [0, 250, 1000])
def test_equal_arms_make_equally_many_calls_however_their_pilots_scatter(least_calls: int):
    """Calls still get quicker along a burst, so that an arm with longer bursts would seem faster."""
    drawn = np.random.default_rng(11)
    for _ in range(200):
        pilots = {
            arm: Pilot(0.5, tuple((int(0.5e6 * np.exp(0.1 * drawn.standard_normal())),) for _ in range(8)))
            for arm in ("a", "b", "c")
        }
        efforts = {arm: effort(own) for arm, own in pilots.items()}
        aligned = align_efforts(efforts, {arm: own.call_s for arm, own in pilots.items()}, least_calls)
        assert len({(each.warmup, each.bursts, each.calls) for each in aligned.values()}) == 1
        assert all(each.bursts * each.calls >= least_calls for each in aligned.values())


def test_an_arm_whose_bursts_are_single_calls_keeps_its_effort_and_gives_it_to_no_other():
    efforts = {"long": Effort(5, 3, 1), "quick": Effort(0, 8, 4)}
    assert align_efforts(efforts, {"long": 0.4, "quick": 0.002}) == efforts


def test_calls_of_nanoseconds_do_not_fill_the_disk():
    assert effort(pilot(0.00005)).calls == MOST_IN_BURST


def test_a_pilot_begins_with_the_floor():
    assert first_effort(0.001) == Effort(0, FEWEST_BURSTS, 1)
    assert first_effort(0.25) == Effort(0, 4, 1)
    assert first_effort(30.0) == Effort(0, FEWEST_SLOW_BURSTS, 1)


def test_a_visit_takes_its_opening_its_warm_up_and_its_bursts_with_their_lead_in():
    assert replicate_s(Pilot(1.0, ((10 * MS,),)), Effort(4, 8, 2)) == pytest.approx(1.0 + 0.04 + 8 * (0.03 + 0.02))
    assert replicate_s(Pilot(1.0, ((1 * MS,),)), Effort(0, 8, 8)) == pytest.approx(1.0 + 8 * (LEAD_IN_S + 0.008))
    assert replicate_s(Pilot(1.0, ((20 * MS,),)), Effort(0, 8, 1)) == pytest.approx(1.0 + 8 * (0.04 + 0.02))
    assert replicate_s(Pilot(1.0, ((50 * MS,),)), Effort(0, 8, 1)) == pytest.approx(1.0 + 8 * (0.05 + 0.05))
    assert replicate_s(Pilot(9.0, ((2000 * MS,),)), Effort(0, 3, 1)) == pytest.approx(15.0)


def test_a_worker_leads_in_a_burst_as_the_plan_expects():
    for name in ("LEAD_IN_S", "LEAD_IN_CALLS", "MOST_LEAD_IN_S"):
        assert getattr(replicate, name) == getattr(calibrate, name)
    assert calibrate.LONG_CALL_S * 1e9 == replicate.LONG_NS


def test_warm_up_ends_where_three_calls_are_like_the_later_half():
    assert calls_to_settle([50, 40, 30, 20, *[10] * 20]) == 4
    assert calls_to_settle([10] * 24) == 0


def test_of_few_slow_calls_only_the_first_is_warm_up():
    assert calls_to_settle([15, 10, 10]) == 1
    assert calls_to_settle([10, 10, 10]) == 0
    assert calls_to_settle([10]) == 0


def test_one_spike_is_no_warm_up_and_no_scatter():
    assert calls_to_settle([*[10] * 10, 500, *[10] * 13]) == 0
    assert scatter([*[10] * 10, 500, *[10] * 13]) == 0


def test_calls_that_never_settle_are_warmed_up_within_bounds():
    growing = tuple(int(10 * 1.1**number) for number in range(200))
    assert calls_to_settle(growing) > MOST_WARMUP
    assert effort(Pilot(0.1, (growing,))).warmup == MOST_WARMUP


def test_the_error_of_a_replicate_is_the_scatter_of_its_bursts_over_the_root_of_their_number():
    one = pilot(spread=0.2, bursts=16)
    means = [float(np.mean(burst)) for burst in one.bursts_ns]
    assert error_of_bursts(one) == pytest.approx(scatter(means) / 4)
    assert error_of_bursts(Pilot(0.3, (one.bursts_ns[0],))) == 0.0


def test_calls_for_percentiles_are_spread_over_the_bursts():
    usual = effort(pilot())
    [aligned] = align_efforts({"a": usual}, {"a": pilot().call_s}, 100).values()
    assert aligned.calls == max(usual.calls, math.ceil(100 / usual.bursts))


def test_an_arm_among_slow_ones_gives_its_warm_up_to_none():
    efforts = {"slow": Effort(2, 3, 1), "slower": Effort(4, 3, 1)}
    assert align_efforts(efforts, {"slow": 0.5, "slower": 2.0}) == efforts


def test_warm_up_ends_at_the_end_where_no_three_calls_are_alike():
    # A sequence that begins with what its later half is like needs none; of one that ends otherwise all are left out.
    assert calls_to_settle([1000] * 8) == 0
    assert calls_to_settle([9000, 9000, 9000, 9000, 1000, 1000, 1000, 1000]) == 4
    # Two that are alike at the end are not three; of five calls two are enough.
    assert calls_to_settle([9000, 9000, 9000, 9000, 1000, 1000]) == 6
    assert calls_to_settle([1000, 5000, 5000, 1000, 1000]) == 3

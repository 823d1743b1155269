"""The difference of two profiles in a few lines."""

from orchestrator.profiling.report import describe_difference
from tests.support.builders import NEW, OLD, case
from tests.support.profiled import arm, function, profile, profiled

POWER = case("power")
SAME = function("same", own=50.0)


def described(old, new) -> tuple[str, ...]:
    return describe_difference(profiled([arm(POWER, OLD, profile(*old)), arm(POWER, NEW, profile(*new))]))


def test_new_grown_and_gone_functions_are_named_with_their_times():
    old = [SAME, function("call", own=10.0), function("old_way", own=8.0)]
    new = [SAME, function("call", own=20.0), function("convert", own=30.0, file="keras/ops.py")]
    assert described(old, new) == (
        "new: convert (ops.py), 3.00 ms in a step",
        "grown: call (a.py), 1.00 ms -> 2.00 ms in a step",
        "gone: old_way (a.py), 800 µs in a step",
    )


def test_what_a_profiler_makes_of_the_same_is_not_told():
    assert described([function("same", own=100.0)], [function("same", own=100.5)]) == ()


def test_of_many_the_largest_are_named():
    new = [function(f"new{number}", own=float(number)) for number in range(5, 15)]
    found = described([SAME], [SAME, *new])
    assert [line.partition(" (")[0] for line in found] == ["new: new14", "new: new13", "new: new12"]


def test_a_profile_of_one_version_shows_no_difference():
    assert describe_difference(profiled([arm(POWER, OLD, profile(function("call", own=1.0)))])) == ()

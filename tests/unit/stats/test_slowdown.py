"""How a slowdown is written, and from where on its size is a guess."""

from orchestrator.stats.slowdown import MOST_TOLD, format_slowdown


def test_a_slowdown_has_its_percentage_up_to_a_factor_of_two() -> None:
    assert format_slowdown(0.0123) == "1.2%"
    assert format_slowdown(MOST_TOLD) == "100.0%"
    assert format_slowdown(MOST_TOLD + 0.01) == "over 100%"

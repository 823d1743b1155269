"""How a slowdown is written, and from where on its size is a guess."""

import re

import pytest

from orchestrator.stats.slowdown import LARGEST_SHOWN, format_margin, format_slowdown
from tests.conftest import ROOT


def test_a_slowdown_has_its_percentage_up_to_a_factor_of_two() -> None:
    assert format_slowdown(0.0123) == "1.2%"
    assert format_slowdown(LARGEST_SHOWN) == "100.0%"
    assert format_slowdown(LARGEST_SHOWN + 0.01) == "over 100%"


@pytest.mark.parametrize("text", ["5%", "2.5%", "0.4%", "7%", "29%", "0.05%", "99.9%"])
def test_a_margin_is_printed_as_it_was_written(text: str) -> None:
    assert format_margin(float(text[:-1]) / 100) == text


def test_no_margin_is_rounded_to_whole_percent() -> None:
    rounded = re.compile(r"\{[^{}]*margin[^{}]*:\.\d%\}", re.IGNORECASE)
    sources = {path: path.read_text() for path in (ROOT / "orchestrator").rglob("*.py")}
    found = {path.name: rounded.findall(source) for path, source in sources.items() if rounded.search(source)}
    assert rounded.search('f"margin {plan.margin:.0%}"')
    # The doctor judges against a constant of whole percent.
    assert found == {"noise.py": ["{MARGIN:.0%}"]}

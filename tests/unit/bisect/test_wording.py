"""The words for a finding, of whichever certainty."""

import pytest

from orchestrator.bisect.search import BisectFinding, swap_versions
from orchestrator.bisect.wording import format_finding


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"ratio": 3.6, "ci_low": 3.41, "ci_high": 3.8, "verdict": "slower"}, "3.60x slower (3.41-3.80)"),
        (
            {"ratio": 1.02, "ci_low": 1.01, "ci_high": 1.03, "verdict": "same", "size": "slight"},
            "1.02x slightly slower (1.01-1.03)",
        ),
        ({"ratio": 1.5, "verdict": "inconclusive", "reason": "3 rounds are too few"}, "1.50x inconclusive"),
        ({"verdict": "slower", "reason": "it exceeded the deadline"}, "slower (it exceeded the deadline)"),
    ],
)
def test_a_finding_is_told_with_the_figures_that_it_has(facts: dict, words: str):
    assert format_finding(BisectFinding(earlier="1.0.0", later="2.0.0", **facts)) == words


def test_a_slight_difference_turns_with_its_versions():
    slower = BisectFinding(earlier="1.0.0", later="2.0.0", verdict="same", ratio=1.02, size="slight")
    assert swap_versions(slower).shown_verdict == "slightly faster"

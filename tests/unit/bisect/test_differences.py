"""A search for a leak goes by bytes per call: where it is found, what is said, and that no ratio is."""

import json
from collections.abc import Mapping

import pytest

from orchestrator.bisect import report
from orchestrator.bisect.page import _tables
from orchestrator.bisect.search import BisectFinding, PlannedStep, swap_versions
from orchestrator.model import VerdictName
from orchestrator.terminal.text import render_plain
from tests.support.searches import RELEASES, told

KIB = 1024.0
MARGIN = KIB


class Leaks:
    """Versions that keep so many bytes with each call, compared without noise but for a page."""

    def __init__(self, at: Mapping[int, float]) -> None:
        held, self.held = 0.0, {}
        for place, version in enumerate(RELEASES):
            held += at.get(place, 0.0)
            self.held[version] = held

    def measure(self, wanted: PlannedStep) -> tuple[list[BisectFinding], list[str]]:
        return [self.find(*pair, thorough=wanted.thorough) for pair in wanted.pairs], []

    def find(self, earlier: str, later: str, *, thorough: bool = False) -> BisectFinding:
        by = self.held[later] - self.held[earlier]
        verdict: VerdictName = "same" if abs(by) < MARGIN else "slower" if by > 0 else "faster"
        return BisectFinding(
            earlier=earlier, later=later, verdict=verdict, size="beyond" if abs(by) > MARGIN else None, rounds=6,
            difference=by, difference_low=by - 30, difference_high=by + 30, metric="leak", thorough=thorough,
        )  # fmt: skip


@pytest.mark.parametrize(("by", "more"), [(8 * KIB, True), (-8 * KIB, False)])
def test_a_leak_is_found_and_told_in_bytes(by: float, more: bool):
    state = told(Leaks({4: by}), metric="leak")
    result = state.search_result
    assert not result.wanted
    assert result.main is not None
    assert (result.main.earlier, result.main.later) == ("2.1.4", "2.2.3")
    text = " ".join(render_plain(lambda width: report.layout_search(state, result, width)).split())
    word = "more" if more else "less"
    sign = "+" if more else "-"
    assert f"2.2.3 grows {word} with each call than 2.1.4: {sign}8.0 KiB per call" in text
    assert "100% of the change" in text
    assert "margin 1.0 KiB per call" in text
    assert "x (" not in text
    assert "ratio" not in text
    assert [table.title for table in _tables(state, result)] == ["Versions measured", "Steps"]
    told_object = json.loads(json.dumps(report.search_as_object(state, result), allow_nan=False))
    assert told_object["margin"] == 1024
    assert told_object["whole"]["difference"] == by
    assert {version["ratio"] for version in told_object["versions"]} == {None}
    assert told_object["versions"][-1]["difference"] == by


def test_a_search_without_a_leak_finds_nothing():
    state = told(Leaks({}), metric="leak")
    assert not state.search_result.wanted
    assert state.search_result.main is None
    text = render_plain(lambda width: report.layout_search(state, state.search_result, width))
    assert "2.6.5 is the same as 1.14.0: 0 B per call" in text or "+0 B per call" in text


def test_swapped_versions_have_the_opposite_difference():
    turned = swap_versions(Leaks({4: 8 * KIB}).find("2.1.4", "2.2.3"))
    assert (turned.verdict, turned.difference) == ("faster", -8 * KIB)
    assert (turned.difference_low, turned.difference_high) == (-8 * KIB - 30, -8 * KIB + 30)

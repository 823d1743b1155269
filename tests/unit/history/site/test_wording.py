"""Words on the pages that come from files which others may write."""

import pytest

from orchestrator.history.alarms.opened import COMMITS
from orchestrator.history.site.wording import show_alarm
from tests.support.sites import alarm

LINKS = {
    COMMITS.format("0abcdef", "1abcdef"): True,
    "javascript:alert(1)": False,
    "https://github.com/tensorflow/tensorflow/compare/a...b?x=https://example.org": False,
    "https://example.org/tensorflow/tensorflow/compare/a...b": False,
}


@pytest.mark.parametrize("link", LINKS)
def test_only_a_page_of_commits_is_a_link(link: str):
    assert bool(show_alarm(alarm(commits=link), ()).commits) == LINKS[link]


def test_the_cause_is_shown_without_the_address():
    known = alarm(good="2.22.0.dev20240208", bad="2.22.0.dev20240209", commits=COMMITS.format("0abcdef", "1abcdef"))
    assert show_alarm(known, ()).cause == ("between 2.22.0.dev20240208 (as before) and 2.22.0.dev20240209 (changed)",)

"""Each promise on the pages names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize(("page", "fewest"), [("reliability", 15), ("security", 10)])
def test_every_promise_names_tests_that_exist(page: str, fewest: int):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    if page == "security":
        # The table with a test in each row; the others are about engines and limits.
        text = text.partition("## What the host does for a stranger")[2].partition("\n## ")[0]
    head = ("| promise", "| what the host does", "|---")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(head)]
    assert len(rows) > fewest
    for row in rows:
        named = NAMED.findall(row)
        assert named, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"

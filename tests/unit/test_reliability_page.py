"""Each promise on the page names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_promise_names_tests_that_exist():
    page = (ROOT / "docs" / "reliability.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "|---"))]
    assert len(rows) > 15
    for row in rows:
        named = NAMED.findall(row)
        assert named, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"

"""A run takes no more of the machine than the machine allows, and measures all the same."""

from pathlib import Path

import pytest

from tests.support.stub_runs import Scene

MANY = """
    import time

    PARAMS = {"k": ("0", "1", "2", "3", "4", "5", "6", "7", "8")}
    COMPARISONS = {"k": "0"}

    def build(tf, params):
        return lambda: time.sleep(0.001)
"""


@pytest.mark.slow
def test_linked_cases_are_measured_where_descriptors_do_not_suffice_for_all(tmp_path: Path):
    """Both versions were lost with all cases."""
    code, answer, stderr = Scene(tmp_path).run(MANY, "--rounds", "2", limits="ulimit -n 64")
    assert code == 0, stderr
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert len(answer["arms"]) == 18
    assert "at most 10 of the 18 arms that are compared are open at once (limit: descriptors)" in stderr

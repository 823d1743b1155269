"""Which version a target of a search is of."""

import pytest

from orchestrator.bisect.findings import version_of
from orchestrator.model import Target


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("2.13.0", "2.13.0"),
        ("2.13.0+TF_X=1", "2.13.0"),
        ("2.16.2+keras=2+TF_X=a+b", "2.16.2"),
        ("1.15.5+nv23.03", "1.15.5+nv23.03"),
        ("1.15.5+nv23.03+TF_X=1", "1.15.5+nv23.03"),
    ],
)
def test_changes_are_no_part_of_the_number_of_a_version(name: str, number: str):
    assert version_of(Target(name)) == number

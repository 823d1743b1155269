"""The layout of the files of points."""

from orchestrator.history import schema
from orchestrator.history.schema import CURRENT


def test_layouts_have_a_way_to_the_present_one():
    assert sorted(schema.MIGRATIONS) == list(range(1, CURRENT))

"""Names with numbers in them are sorted as people count."""

from orchestrator.terminal.text import natural_key


def test_numbers_in_names_are_sorted_as_numbers():
    names = ["power[size=11]", "power[size=2]", "power", "power[size=1]", "2.13.0", "2.2.3"]
    assert sorted(names, key=natural_key) == [
        "2.2.3", "2.13.0", "power", "power[size=1]", "power[size=2]", "power[size=11]",
    ]  # fmt: skip

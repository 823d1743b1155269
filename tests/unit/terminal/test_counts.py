from orchestrator.terminal.counts import name_some


def test_names_beyond_the_most_are_counted():
    assert name_some(()) == ""
    assert name_some(("a",)) == "a"
    assert name_some(("a", "b", "c")) == "a, b, c"
    assert name_some(("a", "b", "c", "d", "e")) == "a, b, c and 2 more"
    assert name_some(("a", "b"), 1, "case") == "a and 1 more case"
    assert name_some(("a", "b", "c"), 1, "case") == "a and 2 more cases"

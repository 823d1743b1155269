"""Old names of flags and of their values mean what they always meant."""

import pytest

from orchestrator.old_flags import RENAMED, RENAMED_VALUES, rename


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_stands_for_the_new_one(old: str, new: str):
    assert rename(["run", old, "x"]) == ["run", new, "x"]
    assert rename(["run", f"{old}=x=y"]) == ["run", f"{new}=x=y"]


@pytest.mark.parametrize(
    ("flag", "old", "new"), [(flag, *names) for flag, values in RENAMED_VALUES.items() for names in values.items()]
)
def test_an_old_value_stands_for_the_new_one(flag: str, old: str, new: str):
    assert rename(["run", flag, old, old]) == ["run", flag, new, old]
    assert rename(["run", f"{flag}={old}"]) == ["run", f"{flag}={new}"]


def test_a_value_in_a_list_is_renamed_too():
    assert rename(["report", "--columns", "time,seed,mde"]) == ["report", "--columns", "time,study,mde"]


def test_other_words_and_what_follows_two_dashes_stay():
    words = ["run", "--outer", "--output", "more", "--seed", "1", "--output=seed", "--", "python", "t.py", "--out", "x"]
    assert rename(words) == words
    assert rename(["run", "--", "--suite", "seed"]) == ["run", "--", "--suite", "seed"]

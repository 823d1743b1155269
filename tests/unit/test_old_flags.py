"""Old names of flags mean what they always meant."""

import pytest

from orchestrator.old_flags import RENAMED, rename


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_stands_for_the_new_one(old: str, new: str):
    assert rename(["run", old, "x"]) == ["run", new, "x"]
    assert rename(["run", f"{old}=x=y"]) == ["run", f"{new}=x=y"]


def test_other_words_and_what_follows_two_dashes_stay():
    words = ["run", "--outer", "--output", "more", "--", "python", "train.py", "--out", "x"]
    assert rename(words) == words

"""A flame graph of two profiles shows what grew, and what is new; equal ones have no colour."""

import re

from orchestrator.model.profile import Frame, Node, Stacks
from orchestrator.why.flame import draw_flames, merge_stacks
from tests.support.profiled import profile

FILE = "/lib/python3.11/site-packages/keras/src/trainer.py"


def stacks(**own_ms: float) -> Stacks:
    """Functions that are all called by one, each with its own time per call."""
    frames = (Frame(FILE, 1, "train"), *(Frame(FILE, 2, name) for name in own_ms))
    inner = (Node(0, at, int(ms * 2e6)) for at, ms in enumerate(own_ms.values(), 1))
    return Stacks(calls=2, fold_below=0.001, frames=frames, nodes=(Node(-1, 0, 0), *inner))


def kinds(old: Stacks, new: Stacks) -> dict[str, str]:
    """The colour of each function that is drawn."""
    before, after = (profile(stacks=each) for each in (old, new))
    drawn = str(draw_flames(merge_stacks(before, after)))
    titles = re.findall(r'<title>([^ <:]+)[^<]*</title><rect [^>]*class="flame ?(\w*)"', drawn)
    return dict(titles)


def test_what_grew_and_what_is_new_has_a_colour_and_the_rest_has_none():
    found = kinds(stacks(same=10, grew=10), stacks(same=10, grew=20, new=5))
    assert found == {"all": "grown", "train": "grown", "grew": "grown", "same": "", "new": "new"}


def test_equal_profiles_have_no_colour():
    assert set(kinds(stacks(one=10, other=5), stacks(one=10, other=5)).values()) == {""}


def test_the_name_of_a_function_adds_no_markup():
    evil = stacks(**{"<script>alert(1)</script>": 10})
    drawn = str(draw_flames(merge_stacks(profile(stacks=evil), profile(stacks=evil))))
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn

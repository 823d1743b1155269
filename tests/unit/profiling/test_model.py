"""Where the time went: the seed's three parts, and what is new or grown against the first version."""

import pytest
from pydantic import TypeAdapter, ValidationError

from orchestrator.model import Case
from orchestrator.model.profile import Frame, Node, Profile, Stacks
from orchestrator.profiling.model import stem
from tests.support.builders import target
from tests.support.profiled import STACKS, function, profile


@pytest.mark.parametrize("node", [Node(0, 0, 1), Node(5, 0, 1), Node(-2, 0, 1), Node(-1, 3, 1), Node(-1, -1, 1)])
def test_stacks_that_are_no_tree_are_no_stacks(node: Node):
    with pytest.raises(ValueError, match="node 0 is not a valid node of a tree"):
        Stacks(calls=1, fold_below=0.0, frames=STACKS.frames, nodes=(node,))


def test_a_profile_survives_its_file_and_no_other_does():
    adapter = TypeAdapter(Profile)
    whole = profile(function("predict", own=1))
    assert adapter.validate_json(adapter.dump_json(whole)) == whole
    assert adapter.validate_json(adapter.dump_json(whole)).stacks.frames[0] == Frame(*STACKS.frames[0])
    told = adapter.dump_python(whole)
    for spoilt in ({**told, "more": 1}, {**told, "calls": "many"}, {**told, "functions": [{}]}):
        with pytest.raises(ValidationError):
            adapter.validate_python(spoilt)


def test_two_arms_never_share_a_file_name():
    cases = [
        Case("predict", ()),
        Case("predict", (("call", "predict"), ("model", "tiny"))),
        Case("predict", (("call", "predict-model=tiny"),)),
        Case("own", (("path", "a/b"),)),
        Case("own", (("path", "a-b"),)),
        Case("own", (("path", "a b"),)),
        Case("own", (("text", "x" * 300),)),
        Case("own", (("text", "x" * 301),)),
        Case("../own", (("text", "\n"),)),
    ]
    stems = [stem(case, target("2.0.0")) for case in cases]
    assert stems[1] == "predict,call=predict,model=tiny-2.0.0"
    assert len(set(stems)) == len(cases)
    assert all(len(one) < 200 and not set(one) & set("/\n []") for one in stems)

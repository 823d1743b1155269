"""The types that the modules pass to each other."""

import pytest
from pydantic import TypeAdapter, ValidationError

from orchestrator import model
from orchestrator.model import Arm, ArmKey, Target, params_label, params_text
from tests.support import builders
from tests.support.builders import NEW, OLD, target

EAGER, GRAPH = builders.case(mode="eager"), builders.case(mode="graph")


def test_a_plan_without_claims_measures_each_case_in_each_version():
    assert builders.plan([EAGER, GRAPH]).arms() == (
        Arm(EAGER, target(OLD)), Arm(EAGER, target(NEW)), Arm(GRAPH, target(OLD)), Arm(GRAPH, target(NEW)),
    )  # fmt: skip


def test_a_plan_with_claims_measures_what_those_for_its_device_name():
    here = builders.claim(holds=(ArmKey("power[mode=graph]", target(NEW)),))
    elsewhere = builders.claim(name="other", devices=("gpu",), holds=(ArmKey("power[mode=eager]", target(OLD)),))
    assert builders.plan([EAGER, GRAPH], claims=(here, elsewhere)).arms() == (Arm(GRAPH, target(NEW)),)


def test_whatever_is_about_an_arm_gives_the_same_name_for_it():
    ended = builders.ended(EAGER, NEW)
    name = ArmKey("power[mode=eager]", target(NEW))
    assert Arm(EAGER, target(NEW)).key == builders.arm(EAGER, NEW).key == ended.arm == name
    assert builders.version_pair(EAGER).arms[1] == name


def test_the_control_arm_is_named_after_the_version_that_it_runs():
    own, control = Target("2.13.0"), Target("2.13.0", control=True)
    assert (str(own), str(control)) == ("2.13.0", "2.13.0+control")
    assert (own.control, control.control) == (False, True)
    assert own != control


@pytest.mark.parametrize("made", [Target("2.13.0"), Target("2.13.0", control=True), Target("nightly")], ids=str)
def test_a_target_comes_back_from_its_name(made: Target):
    again = Target.parse(str(made))
    assert (again, again.name, again.control) == (made, made.name, made.control)
    assert {made: 1}[again] == 1


@pytest.mark.parametrize("name", ["", "+control", "2.0+control+control"])
def test_what_is_no_name_of_a_target_is_refused(name: str):
    with pytest.raises(ValueError, match="is not a valid name of a target"):
        Target.parse(name)


def test_targets_are_sorted_like_their_names():
    names = ["1.14.0", "1.14.0+control", "2.0.0", "2.0.0+control", "2.13.0"]
    assert [str(one) for one in sorted(map(Target.parse, reversed(names)))] == names == sorted(names)


def test_programs_find_a_target_by_its_name():
    control = Target("2.0.0", control=True)
    assert control == "2.0.0+control"
    assert control != "2.0.0"
    assert {control: 1}["2.0.0+control"] == 1
    assert repr([control]) == "['2.0.0+control']"


def test_files_have_targets_by_name():
    adapter = TypeAdapter(dict[Target, tuple[Target, ...]])
    made = {Target("2.0.0", control=True): (Target("1.14.0"),)}
    assert adapter.dump_json(made) == b'{"2.0.0+control":["1.14.0"]}'
    read = adapter.validate_json(adapter.dump_json(made))
    assert read == made
    assert [type(one) for one in (*read, *read.popitem()[1])] == [Target, Target]
    with pytest.raises(ValidationError):
        adapter.validate_json(b'{"+control": []}')


def test_parameters_are_written_as_a_label_and_as_text_that_can_be_wrapped():
    params = (("mode", "graph"), ("model", "small"))
    assert (params_label(params), params_text(params)) == ("[mode=graph,model=small]", "mode=graph model=small")
    assert (params_label(()), params_text(())) == ("", "")
    assert EAGER.params_text == "mode=eager"


def test_every_public_name_exists():
    assert [name for name in model.__all__ if not hasattr(model, name)] == []

"""The types that the modules pass to each other."""

from orchestrator import model
from orchestrator.model import Arm, ArmKey, Ended, control_of, is_control, number_of, params_label, params_text
from tests.support import builders
from tests.support.builders import NEW, OLD

EAGER, GRAPH = builders.case(mode="eager"), builders.case(mode="graph")


def test_a_plan_without_claims_measures_each_case_in_each_version():
    assert builders.plan([EAGER, GRAPH]).arms() == (
        Arm(EAGER, OLD), Arm(EAGER, NEW), Arm(GRAPH, OLD), Arm(GRAPH, NEW),
    )  # fmt: skip


def test_a_plan_with_claims_measures_what_those_for_its_device_name():
    here = builders.claim(holds=(ArmKey("power[mode=graph]", NEW),))
    elsewhere = builders.claim(name="other", devices=("gpu",), holds=(ArmKey("power[mode=eager]", OLD),))
    assert builders.plan([EAGER, GRAPH], claims=(here, elsewhere)).arms() == (Arm(GRAPH, NEW),)


def test_whatever_is_about_an_arm_gives_the_same_name_for_it():
    ended = Ended(version=NEW, case=EAGER.label, round=1, replicate=1, outcome="measured")
    name = ArmKey("power[mode=eager]", NEW)
    assert Arm(EAGER, NEW).key == builders.arm(EAGER, NEW).key == ended.arm == name
    assert builders.version_pair(EAGER).arms[1] == name


def test_the_control_arm_is_named_after_the_version_that_it_runs():
    assert control_of("2.13.0") == "2.13.0+control"
    assert [is_control(version) for version in ("2.13.0", "2.13.0+control")] == [False, True]
    assert {number_of(version) for version in ("2.13.0", "2.13.0+control")} == {"2.13.0"}


def test_parameters_are_written_as_a_label_and_as_text_that_can_be_wrapped():
    params = (("mode", "graph"), ("model", "small"))
    assert (params_label(params), params_text(params)) == ("[mode=graph,model=small]", "mode=graph model=small")
    assert (params_label(()), params_text(())) == ("", "")
    assert EAGER.params_text == "mode=eager"


def test_every_public_name_exists():
    assert [name for name in model.__all__ if not hasattr(model, name)] == []

"""Which arms have fewer bursts than calls of their length should get."""

from bench.bodies import below_the_floor
from orchestrator.model import ArmKey, Calibrated
from tests.support.builders import arm, case, evaluation, plan, target

CASE = case()


def test_the_floor_follows_the_length_of_a_call():
    arms = [
        arm(CASE, version="1.0.0", time=20.0),
        arm(CASE, version="2.0.0", time=150.0),
        arm(CASE, version="3.0.0", time=None),
    ]
    bursts = {"1.0.0": 8, "2.0.0": 3, "3.0.0": 1}

    def short(**fewer: int) -> list[str]:
        efforts = {
            ArmKey(CASE.label, target(name)): Calibrated(
                case=CASE.label,
                target=target(name),
                warmup=0,
                bursts=count - fewer.get(f"v{name[0]}", 0),
                calls=1,
                once=0,
                counts=False,
            )
            for name, count in bursts.items()
        }
        found = below_the_floor(evaluation(plan=plan([CASE]), arms=tuple(arms)), efforts)
        return [str(each.target) for each in found]

    assert short() == []
    assert short(v1=1) == ["1.0.0"]
    assert short(v2=1) == ["2.0.0"]

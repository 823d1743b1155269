"""A run of claims with every outcome that one can have."""

from dataclasses import replace

from orchestrator.model import ArmKey, Bound, CaseSet, Evaluation, Share, Shares
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    claim,
    comparison,
    evaluation,
    expectation,
    mean,
    plan,
    target,
    unmeasured,
    version_pair,
)

EAGER, FUNCTION = case(style="eager"), case(style="function")
BROKEN = case("semantics", which="variables")


def scene(title: str = "eager training takes longer than it did") -> Evaluation:
    slower = replace(version_pair(EAGER), margin=1.5)
    same = replace(version_pair(FUNCTION), margin=0.25)
    weaker, unaffected = (replace(version_pair(one), margin=3.0, metric="first") for one in (EAGER, FUNCTION))
    inside = replace(case_pair(EAGER, FUNCTION), margin=10**0.5 - 1, metric="memory")
    sets = (
        CaseSet(pairs=(slower, same), mean_within=1.25, more_often=None),
        CaseSet(pairs=(slower, same), mean_within=None, more_often="slower"),
    )
    said = (
        claim(expectation(pair=slower, effect="slower", published=6.25), name="eager-training", title=title,
              said_of=("a GTX 1070, Windows 10", "CPU of Colab")),
        claim(
            expectation(pair=same, effect="same", published=None),
            expectation(pair=inside, effect="more", published=None, read_as=10.0),
            name="function-on-par", title="functions cost the same, and need no more memory",
        ),
        claim(name="variables", title="variables belong outside", holds=((BROKEN.label, NEW),), withdrawn=True),
        claim(
            expectation(pair=weaker, effect="slower", published=16.0),
            expectation(pair=unaffected, effect="not slower"),
            name="first-call", title="the first call takes sixteen times as long", quote="It takes 16 times as long.",
        ),
        claim(name="on-par", title="about on par on average, and one wins more often", sets=sets),
        claim(
            name="retraces", title="it builds a graph with each call",
            bounds=(
                Bound(arm=ArmKey(EAGER.label, target(NEW)), metric="traces_per_call", at_least=0.9, at_most=None),
                Bound(arm=ArmKey(FUNCTION.label, target(NEW)), metric="traces_per_call", at_least=None, at_most=0.05),
            ),
            shares=(Share(arm=ArmKey(EAGER.label, target(NEW)), function="_process_inputs", published=0.81),),
        ),
        claim(expectation(pair=slower, effect="faster", published=2.0),
              name="only-on-a-gpu", title="it is faster there", devices=("gpu",)),
    )  # fmt: skip
    cases = (EAGER, FUNCTION, BROKEN)
    return evaluation(
        plan=plan(cases, pairs=(slower, same, inside, weaker, unaffected), claims=said),
        arms=(
            arm(EAGER, OLD), arm(EAGER, NEW, traces_per_call=0.98),
            arm(FUNCTION, OLD), arm(FUNCTION, NEW, traces_per_call=0.02),
            unmeasured(BROKEN, NEW, "died", "AssertionError: the variable stayed as it was (raised in a call)",
                       refuted=True),
        ),
        comparisons=(
            comparison(slower, 4.2, "slower", ci_high=6.5),
            comparison(same, 1.02, "same"),
            comparison(inside, 1.5, "inconclusive", "too noisy: 6 rounds show slowdowns from 90% on"),
            comparison(weaker, 5.0, "slower"),
            comparison(unaffected, 1.1, "slower"),
        ),
        shares={
            ArmKey(EAGER.label, target(NEW)): Shares(
                case=EAGER.label, target=target(NEW), shares={"_process_inputs": 0.7}
            )
        },
        set_means=dict.fromkeys(sets, mean(NEW, 2.07, ci_high=2.61)),
    )  # fmt: skip

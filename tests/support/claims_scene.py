"""A run of claims with every outcome that one can have."""

from dataclasses import replace

from orchestrator.model import Comparison, Expectation
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    claim,
    comparison,
    contrast,
    plan,
    unmeasured,
    version_pair,
)

EAGER, FUNCTION = case(style="eager"), case(style="function")
BROKEN = case("semantics", which="variables")


def scene(title: str = "eager training takes longer than it did") -> Comparison:
    slower = replace(version_pair(EAGER), margin=1.5)
    same = replace(version_pair(FUNCTION), margin=0.25)
    inside = replace(case_pair(EAGER, FUNCTION), margin=10**0.5 - 1, metric="traces")
    said = (
        claim(Expectation(pair=slower, effect="slower", published=6.25), name="eager-training", title=title,
              said_of=("a GTX 1070, Windows 10", "CPU of Colab")),
        claim(
            Expectation(pair=same, effect="same", published=None),
            Expectation(pair=inside, effect="more", published=None, read_as=10.0),
            name="function-on-par", title="functions cost the same, and trace no more",
        ),
        claim(name="variables", title="variables belong outside", holds=((BROKEN.label, NEW),), withdrawn=True),
        claim(Expectation(pair=slower, effect="faster", published=2.0),
              name="only-on-a-gpu", title="it is faster there", devices=("gpu",)),
    )  # fmt: skip
    cases = (EAGER, FUNCTION, BROKEN)
    return comparison(
        plan=plan(cases, pairs=(slower, same, inside), claims=said),
        arms=(
            arm(EAGER, OLD), arm(EAGER, NEW), arm(FUNCTION, OLD), arm(FUNCTION, NEW),
            unmeasured(BROKEN, NEW, "died", "AssertionError: the variable stayed as it was (raised in a call)",
                       refuted=True),
        ),
        contrasts=(
            contrast(slower, 4.2, "slower"),
            contrast(same, 1.02, "same"),
            contrast(inside, 1.5, "inconclusive", "too noisy: 6 rounds show slowdowns from 90% on"),
        ),
    )  # fmt: skip

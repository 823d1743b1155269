"""The figures of a claim's text are held against its data."""

from dataclasses import replace

import pytest

from orchestrator.model import Expectation
from tests.support.builders import case, claim, version_pair
from tools.docs.claim_figures import wrong_figures


def made(statement: str, published: float | None = None, title: str = "it is slower"):
    said = claim(Expectation(pair=version_pair(case()), effect="slower", published=published))
    return list(wrong_figures(replace(said, statement=statement, title=title)))


@pytest.mark.parametrize(
    "statement",
    [
        "It takes 6.8 times as long.",
        "From 4.27 ms to 29.1 ms.",
        "From 29.1 ms, where it was 4.27 ms in TensorFlow 1.14.",
        "It took 2 s, and 294 ms before.",
        "It is 580 % slower.",
    ],
)
def test_a_figure_that_the_statement_gives_or_implies_is_right(statement: str):
    assert made(statement, 6.8) == []


def test_a_figure_that_it_does_not_give_is_wrong():
    [problem] = made("From 4.27 ms to 9.1 ms.", 6.8)
    assert "6.8 is tested, but the statement has no such figure" in problem


def test_a_factor_in_the_title_is_tested():
    assert made("It takes 10 times as long.", 10.0, "fit is ten times slower") == []
    assert made("It takes 9.6 times as long.", 9.6, "fit is 10x slower") == []
    [problem] = made("It is slower.", None, "fit is 10 times slower")
    assert "the title says 10 times, which nothing tests" in problem

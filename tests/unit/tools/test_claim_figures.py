"""The figures of a claim's text are held against its data."""

from dataclasses import replace

import pytest

from tests.support.builders import case, claim, expectation, version_pair
from tools.docs.claim_figures import wrong_figures


def made(statement: str, published: float | None = None, title: str = "it is slower"):
    said = claim(expectation(pair=version_pair(case()), effect="slower", published=published))
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


@pytest.mark.parametrize(
    ("title", "factor"),
    [
        ("it is sixty times slower", 60),
        ("it is hundreds of times slower", 100),
        ("it is half as fast", 2),
        ("it needs a third the memory", 3),
        ("it takes twice as long", 2),
        ("it is a tenfold slowdown", 10),
        ("it is 22 % slower", 1.22),
        ("it is orders of magnitude slower", 10),
    ],
)
def test_number_words_of_a_title_are_tested(title: str, factor: float):
    assert made(f"It takes {factor} times as long.", factor, title) == []
    assert any("which nothing tests" in problem for problem in made("It is slower.", None, title))


@pytest.mark.parametrize("title", ["2.0 is as fast as 1.14", "four loops take ten cases", "much slower in 2.13"])
def test_other_numbers_of_a_title_are_no_factors(title: str):
    assert made("It is slower.", None, title) == []


def test_a_factor_in_the_title_may_be_a_reading_of_words():
    pair = version_pair(case())
    said = claim(expectation(pair=pair, effect="slower", published=None, read_as=10.0))
    text = replace(said, statement="It is orders of magnitude slower.", title="it is orders of magnitude slower")
    assert list(wrong_figures(text)) == []


def test_a_factor_that_nothing_tests_is_told():
    [problem] = made("It is slower.", None, "fit is 10 times slower")
    assert "the title says 10 times, which nothing tests" in problem

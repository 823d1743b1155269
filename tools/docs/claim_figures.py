"""Checks that the figures of a claim's text are those that it tests."""

import itertools
import re
from collections.abc import Iterator

from orchestrator.model import Claim, Expectation, Share

NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[ ,]\d{3})+(?![\d.])|(?<![\w.])\d+(?:\.\d+)?")
# A factor in a title: "10 times", "10x", "tenfold".
FACTOR = re.compile(r"\b(\d+(?:\.\d+)?|[a-z]+?)(?: times|x\b|-?fold\b)")
WORDS = dict(zip(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], range(2, 11), strict=True))
# What a text rounds, and the units that the two figures of a quotient may differ in.
ROUNDED, TITLE_ROUNDED, UNITS = 0.03, 0.15, (1.0, 1e-3, 1e3, 60.0, 1 / 60)


def wrong_figures(claim: Claim) -> Iterator[str]:
    """Yield what the text of a claim and its data do not agree in."""
    numbers = [float(re.sub("[ ,]", "", number)) for number in NUMBER.findall(claim.statement)]
    claimed = [ratio for statement in claim.statements for ratio in _ratios(statement)]
    for ratio in claimed:
        if not _is_said(ratio, numbers):
            yield f"{claim.name}: {ratio:g} is tested, but the statement has no such figure and no two that give it"
    for factor in _factors(claim.title):
        if not any(abs(factor / ratio - 1) <= TITLE_ROUNDED for ratio in claimed):
            yield f"{claim.name}: the title says {factor:g} times, which nothing tests"


def _ratios(statement: object) -> tuple[float, ...]:
    if isinstance(statement, Expectation):
        return tuple(filter(None, (statement.published,)))
    return (statement.published,) if isinstance(statement, Share) else ()


def _is_said(ratio: float, numbers: list[float]) -> bool:
    quotients = (
        unit * larger / smaller for larger, smaller in itertools.permutations(numbers, 2) if smaller for unit in UNITS
    )
    return any(abs(said / ratio - 1) <= ROUNDED for said in itertools.chain(numbers, _percents(numbers), quotients))


def _percents(numbers: list[float]) -> Iterator[float]:
    """Yield what percentages mean: a share, or that much slower."""
    for number in numbers:
        yield number / 100
        yield 1 + number / 100


def _factors(title: str) -> Iterator[float]:
    for word in FACTOR.findall(title):
        if word in WORDS or word[0].isdigit():
            yield float(WORDS.get(word, 0) or word)

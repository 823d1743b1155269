"""A check that the figures in a claim's text are those that it tests."""

import itertools
import re
from collections.abc import Iterator, Mapping

from orchestrator.catalog.claims import READ_AS
from orchestrator.model import Claim, Expectation, Share

NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[ ,]\d{3})+(?![\d.])|(?<![\w.])\d+(?:\.\d+)?")
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
WORDS: Mapping[str, float] = {
    **{word: float(number) for number, word in enumerate(ONES, 1)},
    **{word: 10.0 * number for number, word in enumerate(TENS, 2)},
    "hundred": 100.0, "hundreds of": 100.0, "thousand": 1000.0, "thousands of": 1000.0,
}  # fmt: skip
FRACTIONS: Mapping[str, float] = {"half": 2.0, "third": 3.0, "quarter": 4.0, "fifth": 5.0, "tenth": 10.0}
# A title names factors like this: "10 times", "10x", "tenfold", "hundreds of times"; "half as fast"; "22 % slower".
FACTOR = re.compile(rf"\b(\d+(?:\.\d+)?|{'|'.join(WORDS)})(?: times|x\b|-?fold\b)")
FRACTION = re.compile(rf"\b({'|'.join(FRACTIONS)})(?: as | the )")
PERCENT = re.compile(r"\b(\d+(?:\.\d+)?) ?(?:%|per ?cent)")
SINGLE: Mapping[str, float] = {"twice": 2.0, "double": 2.0, "doubles": 2.0, "thrice": 3.0}
# Texts and titles round figures by at most these shares, and two figures of a quotient may differ by these units.
ROUNDED, TITLE_ROUNDED, UNITS = 0.03, 0.15, (1.0, 1e-3, 1e3, 60.0, 1 / 60)


def wrong_figures(claim: Claim) -> Iterator[str]:
    """Yield a sentence for each figure on which the text of a claim and its data disagree."""
    numbers = [float(re.sub("[ ,]", "", number)) for number in NUMBER.findall(claim.statement)]
    claimed = [ratio for statement in claim.statements for ratio in _ratios(statement)]
    for ratio in claimed:
        if not _is_said(ratio, numbers):
            yield f"{claim.name}: {ratio:g} is tested, but the statement has no such figure and no two that give it"
    read = [item.read_as for item in claim.expectations if item.read_as is not None]
    for factor in _factors(claim.title):
        if not any(abs(factor / ratio - 1) <= TITLE_ROUNDED for ratio in (*claimed, *read)):
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
    """Yield the factors that a title names, in digits or in words."""
    text = title.lower()
    for word in FACTOR.findall(text):
        yield WORDS[word] if word in WORDS else float(word)
    for word in FRACTION.findall(text):
        yield FRACTIONS[word]
    for number in PERCENT.findall(text):
        yield 1 + float(number) / 100
    for phrase, factor in (*SINGLE.items(), *READ_AS.items()):
        if re.search(rf"\b{phrase}\b", text):
            yield factor

"""Published statements about TensorFlow's speed, one file each, and the pairs of arms that test them."""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator import catalog
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog.selectors import MARGIN, expand, parse_selector
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import (
    Arm,
    Case,
    CasePair,
    Claim,
    Effect,
    Expectation,
    Metric,
    Pair,
    Target,
    VersionPair,
    Workload,
)

CLAIMS = WORKLOADS / "claims"
SUITES = ("seed", "reported")
# How long the measuring for a whole suite of claims may take unless the user says otherwise.
BUDGETS_S = {"seed": 1140.0}

TIMES: tuple[Metric, ...] = ("steady", "first", "build")
OF_TIMES: tuple[Effect, ...] = ("slower", "faster", "same")
OF_COUNTS: tuple[Effect, ...] = ("more", "less", "same")

# What the words of a source are read as. One rule applies to all claims: the smallest ratio that the words can mean.
READ_AS: Mapping[str, float] = {"severalfold": 2.0, "an order of magnitude": 10.0, "orders of magnitude": 10.0}

Ratio = Annotated[float, Field(gt=1, allow_inf_nan=False)]
ShortText = Annotated[str, Field(min_length=1, max_length=80)]


class _ClaimTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContrastTable(_ClaimTable):
    """A comparison of two versions for one `case`, or of two cases in one `version`."""

    baseline: str
    candidate: str
    expected: Effect
    version: str | None = None
    case: str | None = None
    published: Ratio | None = None
    read_as: Ratio | None = None
    within: Ratio | None = None
    metric: Metric = "steady"


class HoldsTable(_ClaimTable):
    version: str
    case: str


class ClaimTable(_ClaimTable):
    title: str
    source: str
    suite: Literal["seed", "reported"]
    statement: str
    said_of: tuple[ShortText, ...] = Field(min_length=1)
    devices: tuple[Literal["cpu", "gpu"], ...] = Field(min_length=1)
    withdrawn: bool = False
    contrasts: tuple[ContrastTable, ...] = ()
    holds: tuple[HoldsTable, ...] = ()


def all_claims(workloads: dict[str, Workload], directory: Path = CLAIMS) -> dict[str, Claim]:
    return {path.stem: read_claim(path, workloads) for path in sorted(directory.glob("*.toml"))}


def choose(names: Sequence[str], suite: str | None, by_name: dict[str, Claim]) -> tuple[Claim, ...]:
    """Return the named claims, or those of a suite, or all claims."""
    if suite is not None and suite not in SUITES:
        raise UsageError(f"--suite {suite!r}: claims come in the suites {' and '.join(SUITES)}")
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"unknown claim {name!r}{catalog.did_you_mean(name, by_name)}; `tfcompare list claims` shows them all"
            )
    named = [by_name[name] for name in dict.fromkeys(names)] or list(by_name.values())
    chosen = tuple(claim for claim in named if suite in (None, claim.suite))
    if not chosen:
        raise NothingSelected(f"none of the claims named is in the suite {suite}")
    return chosen


def read_claim(path: Path, workloads: dict[str, Workload]) -> Claim:
    try:
        table = ClaimTable.model_validate(tomllib.loads(path.read_text()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if not table.contrasts and not table.holds:
        raise UsageError(f"{path}: a claim needs [[contrasts]] or [[holds]] that test it")
    try:
        expectations = tuple(_expectation(contrast, table.statement, workloads) for contrast in table.contrasts)
        holds = tuple(Arm(_case(arm.case, workloads), _version(arm.version)) for arm in table.holds)
        named = (
            *(case for expectation in expectations for case in expectation.pair.cases),
            *(arm.case for arm in holds),
        )
        return Claim(
            name=path.stem,
            title=table.title,
            source=table.source,
            statement=table.statement.strip(),
            suite=table.suite,
            said_of=table.said_of,
            devices=table.devices,
            withdrawn=table.withdrawn,
            cases=tuple(dict.fromkeys(named)),
            expectations=expectations,
            holds=tuple(arm.key for arm in holds),
        )
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _expectation(table: ContrastTable, statement: str, workloads: dict[str, Workload]) -> Expectation:
    if (table.version is None) == (table.case is None):
        raise UsageError("a contrast names a case, for two versions of it, or a version, for two cases in it")
    if table.expected not in (OF_TIMES if table.metric in TIMES else OF_COUNTS):
        raise UsageError(f"expected = {table.expected!r} cannot be said of {table.metric}")
    if table.published is not None and table.read_as is not None:
        raise UsageError("a contrast has `published` or `read_as`, not both")
    claimed = table.published or table.read_as
    if table.expected == "same" and claimed is not None:
        raise UsageError("what is said to be the same has no published ratio; `within` says how near")
    if table.expected != "same" and table.within is not None:
        raise UsageError("`within` goes with expected = 'same'")
    if table.read_as is not None:
        _check_reading(table.read_as, statement)
    margin = table.within - 1 if table.within else least(claimed)
    pair: Pair
    if table.case is not None:
        pair = VersionPair(
            case=_case(table.case, workloads), baseline=_version(table.baseline), candidate=_version(table.candidate),
            metric=table.metric, margin=margin,
        )  # fmt: skip
    else:
        assert table.version is not None
        pair = CasePair(
            version=_version(table.version), baseline=_case(table.baseline, workloads),
            candidate=_case(table.candidate, workloads), metric=table.metric, margin=margin,
        )  # fmt: skip
    return Expectation(pair=pair, effect=table.expected, published=table.published, read_as=table.read_as)


def _check_reading(ratio: float, statement: str) -> None:
    """Check that the statement has words that the rule reads as this ratio."""
    words = " ".join(statement.lower().split())
    if not any(ratio == reading and phrase in words for phrase, reading in READ_AS.items()):
        rule = ", ".join(f"{phrase!r} {reading:g}" for phrase, reading in READ_AS.items())
        raise UsageError(f"read_as = {ratio:g}: the statement has no words that are read so ({rule})")


def least(claimed: float | None) -> float:
    """Return how much of an effect must be observed, as a margin.

    This is half of the claimed effect on the log scale, since machines differ. If the source gives no ratio, it is the
    smallest ratio that counts as a difference at all. One rule applies to all claims, so none can be tuned.
    """
    return MARGIN if claimed is None else max(MARGIN, math.sqrt(claimed) - 1)


def _case(text: str, workloads: dict[str, Workload]) -> Case:
    selector = parse_selector(text, workloads)
    cases = expand(selector, workloads[selector.workload])
    if len(cases) != 1:
        raise UsageError(f"{text} names {len(cases)} cases: give every parameter one value")
    return cases[0]


def _version(name: str) -> Target:
    return Target(catalog.resolve([name], fewest=1)[0].number)


def cases_of(claims: Iterable[Claim]) -> tuple[Case, ...]:
    """Return every case that the claims name, grouped by workload."""
    cases = dict.fromkeys(case for claim in claims for case in claim.cases)
    return tuple(sorted(cases, key=lambda case: case.workload))

"""Published statements about TensorFlow's speed, one file each, and the pairs of arms that test them."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from orchestrator import catalog, files
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog import changed, targets
from orchestrator.catalog.selectors import MARGIN, expand, parse_selector
from orchestrator.catalog.version import Version
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.metrics import METRICS, TIMES
from orchestrator.model import (
    ArmKey,
    ArmMetric,
    Bound,
    Case,
    CasePair,
    CaseSet,
    Claim,
    Effect,
    Expectation,
    Metric,
    Pair,
    Part,
    Returned,
    Returns,
    Share,
    Target,
    TargetPair,
    Winning,
    Workload,
)

CLAIMS = WORKLOADS / "claims"
# The suites are the first studies, single reports, and claims that take too long to be tested with either.
SUITES = ("studies", "reported", "full")
# Measuring a whole suite of claims may take this long unless the user says otherwise.
BUDGETS_S = {"studies": 1140.0}

OF_TIMES: tuple[Effect, ...] = ("slower", "faster", "same", "not slower", "not faster")
OF_COUNTS: tuple[Effect, ...] = ("more", "less", "same", "not more", "not less")

# A control must stay below this ratio, which counts as "about the same", unless its claim gives another and a reason.
BELOW = 1.25

# The words of a source are read as the smallest ratio that they can mean. This rule applies to all claims.
READ_AS: Mapping[str, float] = {"severalfold": 2.0, "an order of magnitude": 10.0, "orders of magnitude": 10.0}

Ratio = Annotated[float, Field(gt=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
ShortText = Annotated[str, Field(min_length=1, max_length=80)]


class _ClaimTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _find_metric(name: object) -> Metric:
    if name not in METRICS:
        raise ValueError(f"it must be one of {', '.join(METRICS)}")
    return METRICS[str(name)].name


class ComparisonTable(_ClaimTable):
    """A comparison of two targets for one `case`, or of two cases in one `target`.

    A control is expected to be `not slower` and the like: it must not show the effect.
    """

    baseline: str
    candidate: str
    expected: Effect
    target: str | None = None
    case: str | None = None
    published: Ratio | None = None
    read_as: Ratio | None = None
    within: Ratio | None = None
    below: Ratio | None = None
    ours: bool = False
    metric: Annotated[Metric, BeforeValidator(_find_metric)] = "time"

    @property
    def is_control(self) -> bool:
        return self.expected.startswith("not ")


class SetTable(_ClaimTable):
    """A comparison of two targets over all cases that these selectors name."""

    cases: tuple[str, ...] = Field(min_length=1)
    baseline: str
    candidate: str
    mean_within: Ratio | None = None
    more_often: Winning | None = None


class PartTable(_ClaimTable):
    """The part of the way from one case to another that a case between them covers, in one target."""

    target: str
    baseline: str
    step: str
    candidate: str
    at_least: Annotated[float, Field(gt=0, lt=1)]


class HoldsTable(_ClaimTable):
    target: str
    case: str


class ReturnsTable(_ClaimTable):
    """The expectation that a case returns the same in two targets, or something else."""

    case: str
    baseline: str
    candidate: str
    expected: Returned


class BoundTable(HoldsTable):
    """A limit for a figure of one arm."""

    metric: ArmMetric
    at_least: Amount | None = None
    at_most: Amount | None = None


class ShareTable(HoldsTable):
    """The share of its time that an arm spends in a Python function, as the source gives it."""

    function: ShortText
    published: Annotated[float, Field(gt=0, le=1)]


class ClaimTable(_ClaimTable):
    title: str
    source: str
    quote: str | None = Field(default=None, min_length=10, max_length=300)
    suite: Literal["studies", "reported", "full"]
    statement: str
    said_of: tuple[ShortText, ...] = Field(min_length=1)
    devices: tuple[Literal["cpu", "gpu"], ...] = Field(min_length=1)
    # These releases test the claim on a GPU for which its own release holds no code.
    elsewhere: tuple[str, ...] = ()
    withdrawn: bool = False
    sets: tuple[SetTable, ...] = ()
    parts: tuple[PartTable, ...] = ()
    comparisons: tuple[ComparisonTable, ...] = ()
    bounds: tuple[BoundTable, ...] = ()
    shares: tuple[ShareTable, ...] = ()
    holds: tuple[HoldsTable, ...] = ()
    returns: tuple[ReturnsTable, ...] = ()

    @property
    def tests(self) -> tuple[_ClaimTable, ...]:
        return (*self.sets, *self.parts, *self.comparisons, *self.returns, *self.bounds, *self.shares, *self.holds)


def all_claims(workloads: dict[str, Workload]) -> dict[str, Claim]:
    return {path.stem: read_claim(path, workloads) for path in sorted(CLAIMS.glob("*.toml"))}


def find_claims_about(workload: str, workloads: dict[str, Workload]) -> tuple[Claim, ...]:
    """Return the claims that name a workload; only their files are read whole."""
    named = f"{workload}["
    return tuple(read_claim(path, workloads) for path in sorted(CLAIMS.glob("*.toml")) if named in path.read_text())


def choose_claims(names: Sequence[str], suite: str | None, by_name: dict[str, Claim]) -> tuple[Claim, ...]:
    """Return the named claims, or those of a suite, or all claims."""
    if suite is not None and suite not in SUITES:
        raise UsageError(f"--suite {suite!r}: claims come in the suites {', '.join(SUITES)}")
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


def read_claim(
    path: Path, workloads: dict[str, Workload], is_wanted: Callable[[Version], bool] = lambda version: False
) -> Claim:
    """Read a claim; if it allows releases elsewhere that are wanted, they replace the release that it names."""
    tables, text = files.read_toml(path, "the claim")
    try:
        table = ClaimTable.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        line = find_line(text, first["loc"])
        raise UsageError(f"{path}:{line}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if not table.tests:
        kinds = "[[comparisons]], [[sets]], [[parts]], [[returns]], [[bounds]], [[shares]] or [[holds]]"
        raise UsageError(f"{path}: a claim needs {kinds} that test it")
    elsewhere = _read_elsewhere(path, text, table) if table.elsewhere else ()
    if wanted := [version.number for version in elsewhere if is_wanted(version)]:
        moved = {
            kind: tuple(row.model_copy(update={"target": number}) for number in wanted for row in getattr(table, kind))
            for kind in ("parts", "comparisons", "bounds", "holds")
        }
        table = table.model_copy(update=moved)
    reader = _Reader(path, text, table, workloads)
    return Claim(
        name=path.stem,
        title=table.title,
        source=table.source,
        quote=table.quote or "",
        statement=table.statement.strip(),
        suite=table.suite,
        said_of=table.said_of,
        devices=table.devices,
        withdrawn=table.withdrawn,
        sets=tuple(reader.each("sets", reader.case_set)),
        parts=tuple(reader.each("parts", reader.part)),
        expectations=tuple(reader.each("comparisons", reader.expectation)),
        bounds=tuple(reader.each("bounds", reader.bound)),
        shares=tuple(reader.each("shares", reader.share)),
        returns=tuple(reader.each("returns", reader.returns)),
        holds=tuple(reader.each("holds", reader.arm)),
        # The reader has collected these from the statements above.
        cases=tuple(reader.cases.values()),
        definitions=tuple(reader.definitions),
    )


def _read_elsewhere(path: Path, text: str, table: ClaimTable) -> Sequence[Version]:
    """Return the releases that may test the claim elsewhere; raise UsageError unless it is about any one release."""
    place = f"{path}:{find_line(text, ('elsewhere',))}: elsewhere"
    targets = {getattr(test, "target", None) for test in table.tests}
    if len(targets) != 1 or None in targets:
        raise UsageError(f"{place}: only for claims about one release; name it as the target of every test")
    if table.shares or any(each.published is not None for each in table.comparisons):
        raise UsageError(f"{place}: not for published figures, which are those of one release")
    try:
        return catalog.resolve_versions(table.elsewhere, fewest=1)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def find_line(text: str, place: Sequence[str | int]) -> int:
    """Return the line of a TOML file that holds a key, or else the header of its table, or else the first."""
    lines = text.splitlines()
    begin, table, keys = 0, "", [str(part) for part in place if isinstance(part, str)]
    if len(place) > 1 and isinstance(place[1], int):
        table, keys = str(place[0]), keys[1:]
        headers = [number for number, line in enumerate(lines) if line.strip() == f"[[{table}]]"]
        begin = headers[place[1]] if place[1] < len(headers) else 0
    key = re.compile(rf"\s*{re.escape(keys[0])}\s*=") if keys else None
    for number in range(begin + bool(table), len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if key and key.match(lines[number]):
            return number + 1
    return begin + 1


Made = TypeVar("Made")


class _KeyError(Exception):
    """A mistake in one key of a table."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass
class _Reader:
    """Turns the tables of a claim file into statements, and remembers the cases and changed versions that they name."""

    path: Path
    text: str
    table: ClaimTable
    workloads: dict[str, Workload]
    cases: dict[str, Case] = field(default_factory=dict)
    definitions: dict[str, None] = field(default_factory=dict)

    def each(self, kind: str, read: Callable[[Any], Made]) -> Iterator[Made]:
        """Yield the statements of one kind; a mistake is reported with the line of its table."""
        for number, row in enumerate(getattr(self.table, kind)):
            try:
                yield read(row)
            except (UsageError, _KeyError) as error:
                place = (kind, number, error.key) if isinstance(error, _KeyError) else (kind, number)
                raise UsageError(f"{self.path}:{find_line(self.text, place)}: {error}") from error

    def expectation(self, table: ComparisonTable) -> Expectation:
        if (table.target is None) == (table.case is None):
            raise UsageError("a comparison has `case`, to compare two targets, or `target`, to compare two cases")
        if table.expected not in (OF_TIMES if table.metric in TIMES else OF_COUNTS):
            raise UsageError(f"expected = {table.expected!r} does not go with {table.metric}")
        # A metric with units is judged by differences, and its margin is the same as in every run.
        for key in ("published", "read_as", "within", "below") if METRICS[table.metric].units else ():
            if getattr(table, key) is not None:
                raise _KeyError(key, f"{table.metric} is judged by a difference, and `{key}` is a ratio")
        _check_ratios(table, self.table.statement)
        return Expectation(
            pair=self._pair(table, _margin(table)), effect=table.expected, published=table.published,
            read_as=table.read_as, ours=table.ours,
        )  # fmt: skip

    def _pair(self, table: ComparisonTable, margin: float) -> Pair:
        if table.case is not None:
            return TargetPair(
                case=self._case(table.case), baseline=self._target(table.baseline),
                candidate=self._target(table.candidate), metric=table.metric, margin=margin,
            )  # fmt: skip
        return CasePair(
            target=self._target(table.target or ""), baseline=self._case(table.baseline),
            candidate=self._case(table.candidate), metric=table.metric, margin=margin,
        )  # fmt: skip

    def returns(self, table: ReturnsTable) -> Returns:
        return Returns(
            case=self._case(table.case), baseline=self._target(table.baseline),
            candidate=self._target(table.candidate), expected=table.expected,
        )  # fmt: skip

    def case_set(self, table: SetTable) -> CaseSet:
        if (table.mean_within is None) == (table.more_often is None):
            raise UsageError("a set has either `mean_within` or `more_often`")
        baseline, candidate = self._target(table.baseline), self._target(table.candidate)
        cases = dict.fromkeys(case for text in table.cases for case in self._expand(text))
        pairs = tuple(TargetPair(case=case, baseline=baseline, candidate=candidate) for case in cases)
        return CaseSet(pairs=pairs, mean_within=table.mean_within, more_often=table.more_often)

    def part(self, table: PartTable) -> Part:
        baseline, target = self._case(table.baseline), self._target(table.target)
        step, whole = (
            CasePair(target=target, baseline=baseline, candidate=self._case(case), margin=MARGIN)
            for case in (table.step, table.candidate)
        )
        return Part(step=step, whole=whole, at_least=table.at_least)

    def bound(self, table: BoundTable) -> Bound:
        if (table.at_least is None) == (table.at_most is None):
            raise UsageError("a bound has either `at_least` or `at_most`")
        return Bound(arm=self.arm(table), metric=table.metric, at_least=table.at_least, at_most=table.at_most)

    def share(self, table: ShareTable) -> Share:
        return Share(arm=self.arm(table), function=table.function, published=table.published)

    def arm(self, table: HoldsTable) -> ArmKey:
        return ArmKey(self._case(table.case).label, self._target(table.target))

    def _target(self, text: str) -> Target:
        """Return the target of a version, perhaps with changes; the changes are the same on every device."""
        if targets.is_plain(text):
            return Target(catalog.resolve_versions([text], fewest=1)[0].number)
        named = targets.parse_target(text)
        if named.is_foreign and not named.backend:
            raise UsageError(
                f"{text}: a claim is about releases, perhaps with changes, and about backends of Keras; not about a "
                "wheel, an image or your own code"
            )
        version = changed.find_changed(text, "cpu")
        assert version.changes
        self.definitions[version.changes.definition] = None
        return Target(version.name)

    def _case(self, text: str) -> Case:
        cases = self._expand(text)
        if len(cases) != 1:
            raise UsageError(f"{text} names {len(cases)} cases: give every parameter one value")
        return cases[0]

    def _expand(self, text: str) -> Sequence[Case]:
        selector = parse_selector(text, self.workloads)
        cases = expand(selector, self.workloads[selector.workload])
        self.cases.update((case.label, case) for case in cases)
        return cases


def _check_ratios(table: ComparisonTable, statement: str) -> None:
    if table.published is not None and table.read_as is not None:
        raise UsageError("a comparison has `published` or `read_as`, not both")
    for key in ("published", "read_as"):
        if getattr(table, key) is not None and table.is_control:
            raise _KeyError(key, f"a control has no `{key}`: `below` is the ratio that it must stay below")
        if getattr(table, key) is not None and table.expected == "same":
            raise _KeyError(key, "`same` takes no published ratio; `within` says how close to 1 the ratio must be")
    if table.expected != "same" and table.within is not None:
        raise _KeyError("within", "`within` goes with expected = 'same'")
    for key in ("below", "ours"):
        if getattr(table, key) and not table.is_control:
            raise _KeyError(key, f"`{key}` is for a control, which is expected to be 'not slower' or the like")
    words = " ".join(statement.lower().split())
    if table.read_as is not None and not any(
        table.read_as == reading and phrase in words for phrase, reading in READ_AS.items()
    ):
        rule = ", ".join(f"{phrase!r} {reading:g}" for phrase, reading in READ_AS.items())
        raise UsageError(f"read_as = {table.read_as:g}: the statement has no words that mean this ratio ({rule})")


def _margin(table: ComparisonTable) -> float:
    spec = METRICS[table.metric]
    if spec.units and spec.margin is not None:
        return spec.margin
    if table.is_control:
        return (table.below or BELOW) - 1
    return table.within - 1 if table.within else least(table.published or table.read_as)


def least(claimed: float | None) -> float:
    """Return how much of an effect must be observed, as a margin.

    This is half of the claimed effect on the log scale, since machines differ. If the source gives no ratio, it is the
    smallest ratio that counts as a difference at all. One rule applies to all claims, so none can be tuned.
    """
    return MARGIN if claimed is None else max(MARGIN, math.sqrt(claimed) - 1)


def cases_of(claims: Iterable[Claim]) -> tuple[Case, ...]:
    """Return every case that the claims name, grouped by workload."""
    cases = dict.fromkeys(case for claim in claims for case in claim.cases)
    return tuple(sorted(cases, key=lambda case: case.workload))

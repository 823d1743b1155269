"""The pairs of arms whose ratio is requested, and how pydantic reads and writes them."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from orchestrator.model.cases import ArmKey, Case, Params, Target
from orchestrator.model.strict import STRICT, OneOf

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationInfo

ComparisonKind = Literal["target", "case"]
# `orchestrator.metrics` adds the names of all metrics, each of which has an entry in its table.py.
METRIC_NAMES: set[str] = set()
# Each comparison is about one metric: time, unless a run or a claim asks for another.
Metric = Annotated[str, OneOf(METRIC_NAMES)]


@dataclass(frozen=True, kw_only=True)
class FlatPair:
    """A pair of either kind as stored in files and tables: cases and versions by name, and null for missing fields."""

    __pydantic_config__ = STRICT

    kind: ComparisonKind
    target: str | None
    baseline: str
    candidate: str
    case: Case | None
    workload: str
    params: Params
    metric: Metric
    margin: float | None


@dataclass(frozen=True, kw_only=True)
class TargetPair:
    """Two versions of one case whose ratio is requested; its margin is the plan's unless the pair has its own."""

    kind: ClassVar[Literal["target"]] = "target"

    case: Case
    baseline: Target
    candidate: Target
    metric: Metric = "time"
    margin: float | None = None

    @property
    def across(self) -> bool:
        """Whether the pair compares the times of two versions, the main subject of a run."""
        return self.metric == "time"

    @property
    def cases(self) -> tuple[Case, ...]:
        return (self.case,)

    @cached_property
    def arms(self) -> tuple[ArmKey, ArmKey]:
        """The names of the baseline and of the candidate."""
        return ArmKey(self.case.label, self.baseline), ArmKey(self.case.label, self.candidate)

    @property
    def workload(self) -> str:
        return self.case.workload

    @property
    def params(self) -> Params:
        return self.case.params

    @property
    def flat(self) -> FlatPair:
        return FlatPair(
            kind=self.kind, target=None, baseline=str(self.baseline), candidate=str(self.candidate),
            case=self.case, workload=self.workload, params=self.params, metric=self.metric, margin=self.margin,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CasePair:
    """Two cases in one version whose ratio is requested; its margin is the plan's unless the pair has its own."""

    kind: ClassVar[Literal["case"]] = "case"
    across: ClassVar[bool] = False

    target: Target
    baseline: Case
    candidate: Case
    metric: Metric = "time"
    margin: float | None = None

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.baseline, self.candidate

    @cached_property
    def arms(self) -> tuple[ArmKey, ArmKey]:
        """The names of the baseline and of the candidate."""
        return ArmKey(self.baseline.label, self.target), ArmKey(self.candidate.label, self.target)

    @property
    def workload(self) -> str:
        return self.candidate.workload

    @property
    def params(self) -> Params:
        """The parameters that both cases share."""
        return tuple(item for item in self.candidate.params if item in self.baseline.params)

    @property
    def differing_params(self) -> tuple[Params, Params]:
        """The parameters that only the baseline has, and those that only the candidate has."""
        old, new = self.baseline.params, self.candidate.params
        return tuple(item for item in old if item not in new), tuple(item for item in new if item not in old)

    @property
    def flat(self) -> FlatPair:
        return FlatPair(
            kind=self.kind, target=str(self.target), baseline=self.baseline.label, candidate=self.candidate.label,
            case=None, workload=self.workload, params=self.params, metric=self.metric, margin=self.margin,
        )  # fmt: skip


@cache
def _flat_pairs() -> "TypeAdapter[FlatPair]":
    from pydantic import TypeAdapter  # Only files need it, and it takes long to import.

    return TypeAdapter(FlatPair)


def _remember_cases(cases: tuple[Case, ...], info: "ValidationInfo") -> tuple[Case, ...]:
    """Keep the cases in the context: a file's pairs of cases, which follow, name their cases by label."""
    if info.context is not None:
        info.context.update((case.label, case) for case in cases)
    return cases


def _read_pair(value: object, info: "ValidationInfo") -> TargetPair | CasePair:
    flat, by_label = _flat_pairs().validate_python(value), info.context or {}
    if flat.case is not None and flat.target is None:
        return TargetPair(
            case=flat.case, baseline=Target.parse(flat.baseline), candidate=Target.parse(flat.candidate),
            metric=flat.metric, margin=flat.margin,
        )  # fmt: skip
    if flat.case is None and flat.target is not None:
        for label in (flat.baseline, flat.candidate):
            if label not in by_label:
                raise ValueError(f"{label} is not one of the cases")
        return CasePair(
            target=Target.parse(flat.target), baseline=by_label[flat.baseline], candidate=by_label[flat.candidate],
            metric=flat.metric, margin=flat.margin,
        )  # fmt: skip
    raise ValueError("a pair has either a case, for two versions of it, or a version, for two cases in it")


class _CasesSchema:
    """The way pydantic reads cases. It calls this for the first file, and pydantic_core is imported only then."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.with_info_after_validator_function(_remember_cases, handler(source))


class _PairSchema:
    """The way pydantic reads and writes pairs: in the form of a FlatPair."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        written = core_schema.plain_serializer_function_ser_schema(
            lambda pair: pair.flat, return_schema=handler.generate_schema(FlatPair)
        )
        return core_schema.with_info_plain_validator_function(_read_pair, serialization=written)


Cases = Annotated[tuple[Case, ...], _CasesSchema]
Pair = Annotated[TargetPair | CasePair, _PairSchema]

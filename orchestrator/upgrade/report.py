"""The page of an upgrade: the decision, the reasons, and the measurements behind it; also as an object."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, describe_change, describe_followed
from orchestrator.metrics.gates import parse_gates
from orchestrator.metrics.spec import find_figure
from orchestrator.model import Comparison, Evaluation, OutputComparison
from orchestrator.reports.columns import MARKS
from orchestrator.reports.grid import Grid
from orchestrator.reports.magnitudes import show_figures
from orchestrator.results.sketches import show_share
from orchestrator.results.whole_report import correct_for_report
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.strict_json import OF_DIFFERENCE, OF_RATIO, pick
from orchestrator.terminal.text import clip, safe_text
from orchestrator.upgrade.judgement import Obstacle, TargetJudgement, judge_target
from orchestrator.upgrade.run import UpgradeOutcome
from orchestrator.upgrade.state import BETWEEN, HELPED, RUN, WHY, CodeWarning
from orchestrator.why.ends import read_target

SCHEMA = "tfcompare.upgrade/1"
Decision = Literal["go", "go with a flag", "not yet", "not measured"]
# These are the rows of the page, by metric, and their names.
ASPECTS = {
    TIME: "speed", "step": "a step of fit", "first": "first call", "memory": "memory", RESULTS: "results",
    "import": "import", "size": "disk",
}  # fmt: skip
MOST_OBSTACLES, MOST_WARNINGS, MOST_REQUIREMENTS = 6, 10, 6
# Lines are cut to these lengths; causes have long names, and their figures follow.
LONGEST, LONGEST_CAUSE = 150, 320
NARROWEST = 14
UNTESTED = ("other inputs", "long training runs")
# A warning says when its subject ends: `removed in NumPy 2.0`, `will be an error in a future version`.
REMOVED = re.compile(
    r"\b(?:removed|an error|disabled|dropped|unsupported|disallowed|changed?)\b[^.;]{0,40}?\b(?:in|after|from|by)\s+"
    r"(?P<when>(?:an?|the)\s(?:future|next|upcoming)[\w ]*?(?:version|release)s?"
    r"|(?:[A-Z]\w+ )?(?:version )?v?\d+(?:\.\d+)*)",
)


@dataclass(frozen=True)
class AspectRow:
    """The change in one respect: the case in which it is worst, and the verdicts of all cases."""

    metric: str
    worst: Comparison | OutputComparison
    old: str
    new: str
    verdicts: Counter[str]

    @property
    def verdict(self) -> str:
        """The verdict of the worst case, in the words of the metric."""
        worst = self.worst
        if isinstance(worst, OutputComparison):
            return worst.verdict
        return describe_change(self.metric, worst.report_verdict)


@dataclass(frozen=True)
class UpgradeAnswer:
    outcome: UpgradeOutcome

    @cached_property
    def evaluation(self) -> Evaluation | None:
        return self.outcome.evaluate(RUN)

    @cached_property
    def judged(self) -> TargetJudgement | None:
        return self.outcome.judge(RUN).get(self.names[1])

    @property
    def names(self) -> tuple[str, str]:
        question, ends = self.outcome.state.question, self.outcome.state.ends
        return (ends[0][0], ends[1][0]) if ends else (question.old, question.new)

    @cached_property
    def helped(self) -> dict[str, TargetJudgement]:
        """The targets that may help, by their texts."""
        return self._judge_by_text(HELPED)

    @cached_property
    def between(self) -> dict[str, TargetJudgement]:
        """The releases between both ends, by their numbers and in their order."""
        return self._judge_by_text(BETWEEN)

    def _judge_by_text(self, run: str) -> dict[str, TargetJudgement]:
        judged = self.outcome.judge(run)
        texts = dict(self.outcome.state.runs[run].targets) if judged else {}
        return {texts.get(name, name): each for name, each in judged.items()}

    @cached_property
    def flag(self) -> str:
        """The changes with which the new target passes all gates, or ''."""
        passing = [text for text, judged in self.helped.items() if judged.passes]
        return next((text for text in passing if self.helped[text].is_shown), "".join(passing[:1]))

    @property
    def decision(self) -> Decision:
        if self.judged is None or not (self.judged.is_measured or self.judged.tripped):
            return "not measured"
        if self.judged.passes:
            return "go"
        return "go with a flag" if self.flag else "not yet"

    @property
    def best_between(self) -> str:
        """The newest release between both ends that is shown to pass all gates, or ''."""
        return next((text for text, judged in reversed(self.between.items()) if judged.is_shown), "")

    @property
    def open(self) -> tuple[Obstacle, ...]:
        """The obstacles that may exceed a gate in the proposed target, as far as they were measured."""
        judged = self.helped[self.flag] if self.decision == "go with a flag" else self.judged
        return judged.open if judged else ()

    @cached_property
    def aspects(self) -> tuple[AspectRow, ...]:
        evaluation = self.evaluation
        if evaluation is None:
            return ()
        found = []
        for metric in ASPECTS:
            row = self._read_outputs(evaluation) if metric == RESULTS else self._read_metric(evaluation, metric)
            found += [row] if row else []
        return tuple(found)

    @property
    def has_several_cases(self) -> bool:
        return any(row.verdicts.total() > 1 for row in self.aspects)

    def _read_metric(self, evaluation: Evaluation, metric: str) -> AspectRow | None:
        rows = [
            row
            for row in (*evaluation.comparisons, *evaluation.metrics.get(metric, ()))
            if row.pair.metric == metric and row.pair.kind == "target" and str(row.pair.candidate) == self.names[1]
        ]
        if not rows:
            return None
        order = ("slower", "inconclusive", "same", "faster")
        worst = min(rows, key=lambda row: (order.index(row.report_verdict), -(row.estimate or 0.0)))
        spec = METRICS[metric]
        figures = (find_figure(spec, evaluation.arms, key) for key in worst.pair.arms)
        old, new = ("" if each is None else spec.show(each) for each in figures)
        return AspectRow(metric, worst, old, new, Counter(describe_change(metric, row.report_verdict) for row in rows))

    def _read_outputs(self, evaluation: Evaluation) -> AspectRow | None:
        rows = [row for row in evaluation.outputs if str(row.candidate) == self.names[1]]
        if not rows:
            return None
        order = ("differs", "not comparable", "equal within tolerance", "equal")
        worst = min(rows, key=lambda row: (order.index(row.verdict), -(row.difference or 0.0)))
        return AspectRow(RESULTS, worst, "", "", Counter(row.verdict for row in rows))

    @cached_property
    def losses(self) -> str:
        """The last loss of a program in both ends, if it prints one, or ''."""
        arms = {str(arm.target): arm.loss for arm in self.evaluation.arms} if self.evaluation else {}
        old, new = (arms.get(name) for name in self.names)
        return "" if old is None or new is None else f"last loss of fit: {old:.6g} -> {new:.6g}"

    @property
    def own_warnings(self) -> tuple[CodeWarning, ...]:
        return tuple(each for each in self.outcome.state.warnings or () if each.own)

    @property
    def untested(self) -> tuple[str, ...]:
        """What the answer does not cover."""
        run, state = self.outcome.state.question.run, self.outcome.state
        gpu = () if run.environments.gpu else ("a GPU",)
        results = ("what the program computes",) if run.program else ()
        no_warnings = ("warnings",) if state.warnings is None else ()
        return (*results, *no_warnings, *gpu, *UNTESTED)


def find_removal(text: str) -> str:
    """Return when the subject of a warning ends, according to its text, or ''."""
    match = REMOVED.search(text)
    return " ".join(match["when"].split()) if match else ""


def tell_decision(answer: UpgradeAnswer) -> str:
    """Return the first line: the decision and its reason."""
    old, new = answer.names
    unshown = _name_open(answer.open)
    if answer.decision == "not measured":
        return f"NOT MEASURED: no case has a result in both {old} and {new}."
    assert answer.judged
    if answer.decision == "go":
        return f"GO: {new} passes all gates against {old}{unshown}."
    because = name_some(_tell_tripped(answer.judged), 1, "obstacle")
    if answer.decision == "go with a flag":
        changes = " ".join(read_target(answer.flag).changes)
        return f"GO WITH A FLAG: {changes}{unshown}. Without it: {because}."
    return f"NOT YET: {because}."


def _name_open(obstacles: Sequence[Obstacle]) -> str:
    metrics = dict.fromkeys(ASPECTS.get(each.metric, each.metric) for each in obstacles)
    return f" (not shown for: {', '.join(metrics)})" if metrics else ""


def _tell_tripped(judged: TargetJudgement) -> list[str]:
    """Return what trips a gate, the worst first."""
    worst = judged.worst
    return [] if worst is None else [str(worst), *(str(each) for each in judged.tripped if each is not worst)]


def layout_upgrade(answer: UpgradeAnswer, width: int) -> RenderableType:
    old, new = answer.names
    state = answer.outcome.state
    styles = {"go": "bold green", "go with a flag": "bold yellow", "not yet": "bold red"}
    style = "bold yellow" if answer.open and answer.decision == "go" else styles.get(answer.decision, "bold")
    parts: list[RenderableType] = [
        safe_text(f"tfcompare upgrade {old} -> {new} · {describe_subject(answer)}", style="bold"),
        safe_text(describe_upgrade(answer), style="dim"),
        safe_text(tell_decision(answer), style=style),
    ]
    if answer.aspects:
        parts += [Text(), _table(answer, width)]
    for title, lines in list_sections(answer):
        parts += [Text(), safe_text(title, style="bold"), *(safe_text(f"  {line}") for line in lines)]
    parts += [safe_text(f"note: {note}", style="yellow") for note in state.notes]
    parts += [Text(), safe_text(f"not tested: {', '.join(answer.untested)}", style="dim")]
    parts += [safe_text(f"gates: {state.question.gates}", style="dim")]
    parts += [safe_text(f"next: {command}") for command in list_next(answer)]
    return Group(*parts)


def describe_subject(answer: UpgradeAnswer) -> str:
    run, evaluation = answer.outcome.state.question.run, answer.evaluation
    if run.program:
        return shlex.join(run.program)
    cases = [case.label for case in evaluation.plan.cases] if evaluation else list(run.selected)
    return cases[0] if len(cases) == 1 else format_count(len(cases), "case")


def describe_upgrade(answer: UpgradeAnswer) -> str:
    state = answer.outcome.state
    run, host = state.question.run, state.host
    judged = "" if run.judge == "wall" else f"judged by {describe_followed(TIME, run.judge)}"
    rounds = max((row.worst.rounds for row in answer.aspects if isinstance(row.worst, Comparison)), default=0)
    parts = (
        state.engine, run.environments.device, f"{host.get('cpu')}, {host.get('usable_cores')} cores", judged,
        format_count(rounds, "round"), f"{state.seconds / 60:.1f} min",
    )  # fmt: skip
    return " · ".join(str(part) for part in parts if part)


def _table(answer: UpgradeAnswer, width: int) -> Grid:
    """Return the fullest table that fits; long target names are left out first, since the page begins with them."""
    rows = [read_cells(answer, row) for row in answer.aspects]
    rows.append(("what dies", *count_dead(answer), "", "", "", ""))
    headers = ("", "old", "new", "change", "interval", "verdict", "cases")
    most = range(len(headers) if answer.has_several_cases else 6)
    for named, places in ((answer.names, most), ((), most), ((), range(6)), ((), (0, 1, 2, 5))):
        grid = Grid(
            title=safe_text("what changes, in the case where it is worst", style="bold"),
            headers=[named[place - 1] if named and place in (1, 2) else headers[place] for place in places],
            right=[0 < place < 5 for place in places],
            narrowest=NARROWEST,
        )
        for row in rows:
            grid.add(*(row[place] for place in places))
        if grid.least_width <= width:
            break
    return grid


def count_dead(answer: UpgradeAnswer) -> tuple[str, str]:
    """Return how many cases died at each end."""
    died = Counter(str(arm.target) for arm in answer.evaluation.died) if answer.evaluation else Counter[str]()
    old, new = (format_count(died[name], "case") if died[name] else "nothing" for name in answer.names)
    return old, new


def read_cells(answer: UpgradeAnswer, row: AspectRow) -> tuple[str | Text, ...]:
    """Return the cells of an aspect; a style shows what trips a gate."""
    worst = row.worst
    if isinstance(worst, OutputComparison):
        verdict = str(worst.verdict)
        figures = ("" if worst.difference is None else show_share(worst.difference), "")
    else:
        verdict = f"{MARKS[worst.shown_verdict]} {describe_change(row.metric, worst.shown_verdict)}"
        figures = show_figures(worst)
    total = row.verdicts.total()
    cases = f"{row.verdicts[row.verdict]} of {total}" if total > 1 else ""
    trips = answer.judged and any(each.metric == row.metric for each in answer.judged.tripped)
    shown = safe_text(verdict, style="bold red" if trips else "")
    return ASPECTS[row.metric], row.old, row.new, *figures, shown, cases


def list_sections(answer: UpgradeAnswer) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections below the table: a title and its lines."""
    if answer.judged and not answer.judged.passes:
        yield "in the way", _limit(_tell_tripped(answer.judged), MOST_OBSTACLES)
    if answer.open:
        yield "not shown to be within its gate", _limit([str(each) for each in answer.open], MOST_OBSTACLES)
    if answer.outcome.state.why:
        yield f"why {answer.outcome.state.asked}", [clip(line, LONGEST_CAUSE) for line in answer.outcome.state.why]
    if answer.helped:
        yield "what was tried in its place", [_tell(text, judged) for text, judged in answer.helped.items()]
    if answer.between:
        best = answer.best_between
        said = f"the newest release that passes is {best}" if best else "none is shown to pass"
        yield f"between: {said}", [_tell(text, judged) for text, judged in answer.between.items()]
    if warned := list_warnings(answer):
        yield "what will break next", warned
    if requirements := list_requirements(answer):
        yield "your packages", requirements
    if answer.losses:
        yield "training", [answer.losses]


def describe_targets(evaluation: Evaluation, gates: str) -> tuple[str, ...]:
    """Return a line for each target of a run: whether it passes these gates against the baseline."""
    corrected, baseline = correct_for_report(evaluation), evaluation.plan.targets[0]
    others = (target for target in evaluation.plan.targets if target != baseline and not target.control)
    return tuple(_tell(str(each), judge_target(corrected, parse_gates(gates), str(each))) for each in others)


def _tell(text: str, judged: TargetJudgement) -> str:
    if not (judged.is_measured or judged.tripped):
        return f"{text}: not measured"
    if judged.passes:
        return f"{text}: go{_name_open(judged.open)}"
    return clip(f"{text}: not yet: {name_some(_tell_tripped(judged), 1, 'obstacle')}", LONGEST)


def list_warnings(answer: UpgradeAnswer) -> list[str]:
    """Return a line for each warning about the user's own code, and one about all others."""
    own = sorted(answer.own_warnings, key=lambda each: (each.place, each.line))
    lines = []
    for (place, line), given in _by_place(own):
        ends = find_removal(given.text)
        when = f" (until {ends})" if ends else ""
        lines.append(clip(f"{place}:{line} {given.kind}{when}: {given.text}", LONGEST))
    lines = _limit(lines, MOST_WARNINGS)
    others = Counter(each.place for each in answer.outcome.state.warnings or () if not each.own)
    if others:
        named = name_some([f"{name} {count}" for name, count in others.most_common()], 4)
        lines.append(f"{'and ' if own else ''}inside packages, for their authors: {named}")
    return lines


def _by_place(own: Sequence[CodeWarning]) -> Iterator[tuple[tuple[str, int], CodeWarning]]:
    seen = set()
    for given in own:
        # Several cases may run the same line.
        if (key := (given.place, given.line, given.text)) not in seen:
            seen.add(key)
            yield (given.place, given.line), given


def list_requirements(answer: UpgradeAnswer) -> list[str]:
    settled = answer.outcome.state.requirements
    stuck = [f"cannot move: {each.text}: {each.reason}" for each in settled if each.outcome == "cannot move"]
    moved = [f"needs another release: {each.reason}" for each in settled if each.outcome == "moves"]
    stays = sum(each.outcome == "stays" for each in settled)
    rest = [f"{format_count(stays, 'package')} can stay as they are" if stays > 1 else "1 package can stay as it is"]
    return _limit([clip(line, LONGEST) for line in (*stuck, *moved)], MOST_REQUIREMENTS) + (rest if stays else [])


def _limit(lines: list[str], most: int) -> list[str]:
    left = len(lines) - most
    return [*lines[:most], *([f"and {left} more, which --format json lists"] if left > 0 else [])]


def list_next(answer: UpgradeAnswer) -> Iterator[str]:
    """Yield the commands that continue."""
    state, path = answer.outcome.state, answer.outcome.path
    if any(not run.is_done for run in state.runs.values()) or RUN not in state.runs:
        yield shlex.join(["tfcompare", "upgrade", "--resume", str(path)])
    elif answer.open and answer.decision != "not yet":
        run = HELPED if answer.decision == "go with a flag" else RUN
        yield shlex.join(["tfcompare", "run", "--resume", str(path / run), "--budget", "5m"])
    elif answer.decision == "not yet" and not state.question.remedies:
        yield shlex.join(["tfcompare", "upgrade", "--resume", str(path)])
    elif answer.decision == "not yet" and state.asked:
        yield shlex.join(["tfcompare", "why", "--resume", str(path / WHY), "--budget", "30m"])


def upgrade_as_object(answer: UpgradeAnswer) -> dict[str, Any]:
    """Return the `tfcompare.upgrade/1` object, which is part of the interface."""
    state = answer.outcome.state
    old, new = answer.names
    return {
        "schema": SCHEMA,
        "old": {"name": old, "target": state.question.old},
        "new": {"name": new, "target": state.question.new},
        "subject": describe_subject(answer),
        "engine": state.engine,
        "device": state.question.run.environments.device,
        "judge": state.question.run.judge,
        "host": state.host,
        "created": state.created.isoformat(),
        "seconds": state.seconds,
        "gates": state.question.gates,
        "decision": answer.decision,
        "flag": answer.flag or None,
        "tripped": _obstacles(answer.judged.tripped if answer.judged else ()),
        "open": _obstacles(answer.open),
        "aspects": [_aspect_as_object(row) for row in answer.aspects],
        "died": [
            pick(arm, "case=case.label target reason?") for arm in (answer.evaluation.died if answer.evaluation else ())
        ],
        "warnings": [
            {**pick(each, "kind text place line own case"), "until": find_removal(each.text) or None}
            for each in state.warnings or ()
        ],
        "requirements": [pick(each, "text outcome reason?") for each in state.requirements],
        "why": list(state.why),
        "helped": _targets(answer.helped),
        "between": _targets(answer.between),
        "best_between": answer.best_between or None,
        "untested": list(answer.untested),
        "notes": list(state.notes),
        "runs": {name: str(answer.outcome.path / name) for name in state.runs},
        "next": list(list_next(answer)),
    }


def _obstacles(obstacles: Sequence[Obstacle]) -> list[dict[str, Any]]:
    return [pick(each, "gate metric case? text") for each in obstacles]


def _targets(judged: dict[str, TargetJudgement]) -> list[dict[str, Any]]:
    return [
        {"target": text, "passes": each.passes, "tripped": _obstacles(each.tripped), "open": _obstacles(each.open)}
        for text, each in judged.items()
    ]


def _aspect_as_object(row: AspectRow) -> dict[str, Any]:
    worst, names = row.worst, f"size {OF_RATIO} {OF_DIFFERENCE} rounds reason?"
    if isinstance(worst, OutputComparison):
        # Results have no ratio and no interval.
        unknown = dict.fromkeys(names.replace("?", "").split())
        found = {**unknown, **pick(worst, "case=case.label difference reason?")}
    else:
        found = {"case": worst.pair.arms[0].case, **pick(worst, names)}
    return {
        "aspect": ASPECTS[row.metric], "metric": row.metric, **found, "verdict": row.verdict,
        "verdicts": dict(row.verdicts),
    }  # fmt: skip

"""An Atom feed of an atlas: one entry per certain step, the newest release first."""

from collections.abc import Sequence

from orchestrator.atlas.figures import AtlasFigures, AtlasRatio
from orchestrator.atlas.summary import name_cases
from orchestrator.history.site.wording import page_of
from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.metrics.followed import TIME
from orchestrator.reports.html.atom import FeedItem, render_feed
from orchestrator.reports.magnitudes import show_magnitude

MOST_ENTRIES = 100


def write_feed(all_figures: Sequence[AtlasFigures]) -> bytes:
    items = []
    for figures in all_figures:
        places = {release.name: place for place, release in enumerate(figures.releases)}
        days = {release.name: release.measured for release in figures.releases}
        names = name_cases(figures)
        steps = sorted(figures.largest, key=lambda step: -places.get(step.newer, 0))
        items += [_make_item(figures, step, names[step.case], days.get(step.newer) or figures.built) for step in steps]
    title = all_figures[0].title
    return render_feed(title, f"atlas\n{title}", items[:MOST_ENTRIES], alternate="index.html")


def _make_item(figures: AtlasFigures, step: AtlasRatio, name: str, day: str) -> FeedItem:
    spec = METRICS[step.metric]
    verdict = describe_verdict(step.metric, step.verdict)
    about = "" if step.metric == TIME else f" ({spec.about})"
    machine = ", ".join(figures.machine.values())
    return FeedItem(
        key=f"{machine}\n{step.case}\n{step.metric}\n{step.older}\n{step.newer}",
        title=f"{step.newer}: {name} is {verdict}{about}, {show_magnitude(step, step.metric)}",
        updated=f"{day}T00:00:00Z",
        link=page_of(step.case),
        categories=(step.newer, verdict),
        lines=(
            f"{step.case} in {step.newer} against {step.older}, on {machine}.",
            *figures.find_cause(step),
            *(f"Published: {claim.title} ({claim.source})" for claim in figures.find_claims(step)),
        ),
    )

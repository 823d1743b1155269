"""Where the golden files are, and what was written to some of them."""

from datetime import UTC, datetime
from pathlib import Path

from orchestrator.atlas.figures import AtlasCause
from orchestrator.atlas.state import AtlasQuestion, AtlasState, InstalledTarget, UnitRun
from orchestrator.atlas.units import make_units
from orchestrator.catalog.trust import Trust
from orchestrator.fleet.machines import FleetMachine, NamedFleet
from orchestrator.plan.request import RunOptions
from orchestrator.upgrade.state import CodeWarning, MeasuredRun, Requirement, UpgradeQuestion, UpgradeState
from orchestrator.why.ladder import Ladder, Rung
from orchestrator.why.state import LadderStep, RemedyStep, WhyQuestion, WhyState
from tests.support.builders import NEW, OLD, case
from tests.support.profiled import arm, function, profile, profiled

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
POWER = case("power", style="eager")
PROFILED = profiled(
    [arm(POWER, OLD, profile(function("call", own=8.0))), arm(POWER, NEW, None, "refused", "no such op")]
)
NAMED = NamedFleet(
    ssh=("ssh", "-p", "2222"),
    python="/opt/tfcompare/bin/python",
    machines=(FleetMachine(host="me@a", labels={"host": "a", "gpu": "a100"}),),
)
TRUSTED = {Path("/mine"): Trust(settings="0a1b", outside={"images": "/data/images"})}
LADDER = Ladder(
    texts=("2.15.1", "2.20.0 TF_ENABLE_ONEDNN_OPTS=0", "2.20.0"),
    names=("2.15.1", "2.20.0+TF_ENABLE_ONEDNN_OPTS=0", "2.20.0"),
    rungs=(Rung(causes=("numpy 1.26.4 -> 2.1.3",), rest="TensorFlow 2.15.1 -> 2.20.0"), Rung(causes=("oneDNN",))),
)
ASKED = WhyState(
    created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), tool="0.1.0", contract="x", host={"cpu": "A CPU"}, sources={},
    question=WhyQuestion(old="2.15.1", new="2.20.0", run=RunOptions(), budget_s=900.0), case=POWER, engine="venv",
    ladders=(LadderStep(ladder=LADDER, run="steps/01", seconds=30.0, is_done=True),),
    remedies=RemedyStep(tried=(("no oneDNN", "2.20.0 TF_ENABLE_ONEDNN_OPTS=0", ""),), run="steps/02", seconds=9.0),
    notes=("numpy cannot be undone alone",), profile="profile",
)  # fmt: skip
MOVED = UpgradeState(
    created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), tool="0.1.0", contract="x", host={"cpu": "A CPU"},
    question=UpgradeQuestion(
        old="2.8", new="2.20", run=RunOptions(program=("python", "train.py")), gates="slower>10%,died", budget_s=300.0,
        more_s=900.0,
    ),
    engine="venv", ends=(("2.8.4", "2.8.4"), ("2.20.0", "2.20.0")),
    requirements=(Requirement(text="pandas==1.3.5", outcome="cannot move", reason="no wheel for this Python"),),
    runs={"run": MeasuredRun(targets=(("2.8.4", "2.8.4"), ("2.20.0", "2.20.0")), seconds=300.0, is_done=True)},
    warnings=(
        CodeWarning(
            kind="DeprecationWarning", text="gone in 3.0", place="train.py", line=12, own=True, case="python train.py"
        ),
    ),
    asked="slower, 1.23x (1.10-1.37)",
    why=("Why: Keras 2.8.0 -> 3.10.0: 1.23x slower",), why_s=400.0, notes=("a note",),
)  # fmt: skip
FOLLOWED = AtlasState(
    created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), tool="0.1.0", contract="x", host={"cpu": "A CPU"},
    question=AtlasQuestion(title="An atlas", releases=("2.8.4", "2.13.0", "2.20.0"), run=RunOptions(suite="atlas")),
    units=make_units(("2.8.4", "2.13.0", "2.20.0")), engine="venv",
    runs={"00": UnitRun(rounds=8, seconds=300.0, is_done=True), "01": UnitRun(failure="no wheel", lacks=("2.13.0",))},
    installed={"2.8.4": InstalledTarget(engine="venv", identity="2.8.4-cp310-0a1b2c3d")}, installing=("2.13.0",),
    left_out={"2.16.1": "no GPU fits"},
    causes=(
        AtlasCause(
            case="power", metric="time", older="2.8.4", newer="2.13.0", findings=("Why: Keras 2.8.0 -> 2.13.1",)
        ),
    ),
)  # fmt: skip


def stream(name: str) -> Path:
    return GOLDEN / f"{name}.arrow"

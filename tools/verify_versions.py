"""Run every version of the table on this machine and record the results.

For each version, the environment is built, TensorFlow is imported, a model is trained, and the cases of the smoke suite
are measured. The results are in images/verified.json, from which docs/versions.md is written.

After an interruption, run the command again: versions that already ran with today's lock are skipped, unless --again
is given.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from orchestrator import catalog, files
from orchestrator.bundled import IMAGES
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EnvironmentFailed, TfCompareError
from orchestrator.images.venv_cache import remove_environment
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.run import measure_rounds
from orchestrator.measure.session import Session, make_manifest
from orchestrator.model import Target
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.results.past import Progress
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.progress import choose_view
from orchestrator.terminal.view import View

RECORD = IMAGES / "verified.json"
ROUNDS = 2


def read() -> dict[str, dict]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def write(record: dict[str, dict]) -> None:
    ordered = {key: record[key] for key in sorted(record)}
    files.write_atomically(RECORD, (json.dumps(ordered, indent=2) + "\n").encode())


def verify(version: Version, flavour: Flavour, parent: Path, view: View, keep: bool) -> dict:
    """Run one flavour of one version, from its lock to the smoke suite's verdicts."""
    alone = replace(version, flavours=(flavour,))
    result = {
        "lock": catalog.lock_hash(flavour),
        "day": datetime.now(UTC).date().isoformat(),
        "engine": "venv",
        "ok": False,
    }
    options = RunOptions(versions=(version.number,), suite="smoke", rounds=ROUNDS, seed=1)
    request = check_request(options, fewest=1)
    plan = request.freeze("venv")
    folder = RunFolder.create(parent / f"{version.number}-{flavour.python.number}")
    begun = time.monotonic()
    log = BuildLog(folder.logs / "build.log", view, version.number)
    with closing(VenvEngine(EngineOptions())) as engine:
        try:
            environment = engine.prepare(alone, log)
        except EnvironmentFailed as error:
            return {**result, "said": str(error).splitlines()[0]}
        if log.used:
            result["built_s"] = round(time.monotonic() - begun)
        target = Target(version.name)
        folder.write_plan(plan)
        folder.write_manifest(make_manifest(request, {target: environment}))
        session = Session(plan, {target: environment}, folder, view=view)
        done = measure_rounds(session, first_rounds(plan), Progress())
    outcomes = [arm.outcome for arm in done.evaluation.arms]
    facts = folder.read_manifest().workers.get(target, {})
    problems = [f"{arm.case.label}: {arm.reason}" for arm in done.evaluation.died]
    problems = problems or ([str(done.error)] if done.error else [])
    if log.used and not keep:
        remove_environment(environment.path)
    return {
        **result,
        "python": environment.facts.python,
        **{name: facts[name] for name in ("tensorflow", "tf_keras", "keras", "numpy", "pyarrow") if facts.get(name)},
        **{outcome: outcomes.count(outcome) for outcome in ("measured", "refused", "died")},
        "ok": not problems and "measured" in outcomes,
        **({"said": "; ".join(problems)[:400]} if problems else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "version", nargs="*", default=["all"], help="as for --versions; the whole table if none is named"
    )
    parser.add_argument("--again", action="store_true", help="also run versions that already ran with today's lock")
    parser.add_argument("--keep", action="store_true", help="keep environments that are not the first of their version")
    options = parser.parse_args()
    try:
        versions = (
            catalog.all_versions()
            if options.version == ["all"]
            else catalog.resolve_versions(options.version, fewest=1)
        )
        failed = False
        with (
            choose_view(Console(stderr=True), quiet=False, verbose=False) as view,
            tempfile.TemporaryDirectory() as scratch,
        ):
            for version in versions:
                for index, flavour in enumerate(version.on("cpu")):
                    key = f"{version.number} cpu py{flavour.python.number}"
                    earlier = read().get(key)
                    current = earlier and earlier["lock"] == catalog.lock_hash(flavour)
                    if current and earlier["ok"] and not options.again:
                        continue
                    view.say(f"{key}: running")
                    result = verify(version, flavour, Path(scratch), view, keep=options.keep or index == 0)
                    write({**read(), key: result})
                    failed = failed or not result["ok"]
                    view.say(f"{key}: {'ok' if result['ok'] else result.get('said', 'nothing was measured')}")
    except TfCompareError as error:
        sys.exit(f"verify-versions: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Write tests/golden/: one file of each format, and of result streams one by the oldest and by the newest pyarrow.

    python tools/golden.py
    python tools/golden.py --only newest

`--only kept` gives the runs that docs/migration.md tells of, which were measured once, the contract's new fingerprint.
Run it with the development environment's Python: its pyarrow is the newest. The oldest is pyarrow 6.0.1 in a scratch
environment of a Python 3.6 from PATH, pyenv or uv. A change of a format, or of the contract's fingerprint, needs new
files in the same commit. TensorFlow is a stub: the files show how rows are written, not how long anything takes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator import contract  # noqa: E402
from orchestrator.atlas import state as atlas_state  # noqa: E402
from orchestrator.atlas.figures import figures_as_json  # noqa: E402
from orchestrator.bisect import state  # noqa: E402
from orchestrator.catalog import trust  # noqa: E402
from orchestrator.engines.venv import interpreters  # noqa: E402
from orchestrator.engines.worker.client import Opened  # noqa: E402
from orchestrator.fleet import machines  # noqa: E402
from orchestrator.formats import PROFILE  # noqa: E402
from orchestrator.history.model import AlarmOpened  # noqa: E402
from orchestrator.history.store import Store  # noqa: E402
from orchestrator.profiling import stored  # noqa: E402
from orchestrator.profiling.model import stem  # noqa: E402
from orchestrator.saved_models.report import REPORT, write_models  # noqa: E402
from orchestrator.upgrade import state as upgrade_state  # noqa: E402
from orchestrator.why import state as why_state  # noqa: E402
from tests.support.atlases import figures  # noqa: E402
from tests.support.bench import Bench  # noqa: E402
from tests.support.golden import ASKED, FOLLOWED, GOLDEN, MOVED, NAMED, PROFILED, TRUSTED  # noqa: E402
from tests.support.night_reports import NIGHT, alarm  # noqa: E402
from tests.support.nights import history  # noqa: E402
from tests.support.saved_tables import DIES, table  # noqa: E402
from tests.support.searches import SCENES as SEARCHES  # noqa: E402
from tests.support.small_run import write_run  # noqa: E402

KEPT = GOLDEN / "migration.tar.xz"
OLDEST = ("pyarrow==6.0.1", "numpy==1.19.5")
# The pip that Python 3.6 comes with sees no pyarrow newer than 2.
OLD_PIP = "pip==21.3.1"

# One case is traced once, the other never.
WORKLOAD = """
    import numpy

    def build(tf, params):
        drawn = numpy.arange(1000 * int(params["size"])) / 4.0
        step = tf.function(tf.constant) if params["style"] == "function" else tf.constant
        return lambda: step(drawn)
"""
CASES = ({"style": "function", "size": "3"}, {"style": "eager", "size": "5"})
ROUNDS = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("oldest", "newest", "host", "kept"))
    only = parser.parse_args().only
    with TemporaryDirectory() as scratch:
        if only in (None, "host"):
            write_host_files(Path(scratch))
        if only in (None, "newest"):
            write("newest", sys.executable, Path(scratch))
        if only in (None, "oldest"):
            write("oldest", old_python(Path(scratch)), Path(scratch))
        if only in (None, "kept"):
            renew_kept(Path(scratch) / "kept")


def write_host_files(scratch: Path) -> None:
    """Write one file, or one folder, of each format that the host writes."""
    os.environ["TFCOMPARE_DATA"] = str(scratch / "data")
    shutil.rmtree(GOLDEN / "run", ignore_errors=True)
    shutil.copytree(write_run(scratch / "run"), GOLDEN / "run", ignore=shutil.ignore_patterns(".lock"))
    search = SEARCHES["one"]()
    state.write_state(scratch, search)
    shutil.copyfile(scratch / state.STATE_FILE, GOLDEN / state.STATE_FILE)
    why_state.write_question(scratch, ASKED)
    shutil.copyfile(scratch / why_state.STATE_FILE, GOLDEN / why_state.STATE_FILE)
    upgrade_state.write_upgrade(scratch, MOVED)
    shutil.copyfile(scratch / upgrade_state.STATE_FILE, GOLDEN / upgrade_state.STATE_FILE)
    atlas_state.write_atlas(scratch, FOLLOWED)
    shutil.copyfile(scratch / atlas_state.STATE_FILE, GOLDEN / atlas_state.STATE_FILE)
    (GOLDEN / "figures.json").write_text(figures_as_json(figures()) + "\n")
    write_models(table(scratch, wrong=DIES))
    shutil.copyfile(scratch / REPORT, GOLDEN / REPORT)
    profiles = GOLDEN / "profile" / "profiles"
    profiles.mkdir(parents=True, exist_ok=True)
    (profiles.parent / stored.PROFILE_FILE).write_bytes(PROFILE.stamp(stored.HEADING.dump_json(PROFILED.heading)))
    for arm in PROFILED.arms:
        (profiles / f"{stem(arm.case, arm.target)}.json").write_bytes(PROFILE.stamp(stored.ARM.dump_json(arm)))
    store = Store(scratch / "history")
    shutil.copyfile(store.append(history(1, 2)), GOLDEN / "points.parquet")
    shutil.copyfile(store.record(AlarmOpened(at=NIGHT.at, alarm=alarm(1.5))), GOLDEN / "event.json")
    trust.record_trust(TRUSTED)
    shutil.copyfile(trust.file(), GOLDEN / "trusted.json")
    machines.write_fleet(NAMED)
    shutil.copyfile(machines.state_file(), GOLDEN / "fleet.json")


def renew_kept(folder: Path) -> None:
    """Put the new fingerprint into the kept runs; what the contract says of their rows must be as before."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    before = set()
    for path in folder.rglob("*.arrow"):
        with pa.ipc.open_stream(path) as reader:
            batches, metadata = list(reader), dict(reader.schema.metadata)
        before.add(metadata[contract.FINGERPRINT_KEY].decode())
        schema = reader.schema.with_metadata({**metadata, contract.FINGERPRINT_KEY: contract.FINGERPRINT.encode()})
        with pa.ipc.new_stream(path, schema) as writer:
            for batch in batches:
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    [old] = before
    for path in folder.rglob("*.json*"):
        path.write_text(path.read_text().replace(old, contract.FINGERPRINT))
    pack_kept(folder)


def pack_kept(folder: Path) -> None:
    """Write the archive of kept runs, without what differs from machine to machine."""

    def strip(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(KEPT, "w:xz", preset=9) as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name, filter=strip)


def old_python(scratch: Path) -> Path:
    interpreter = interpreters.find_interpreter("3.6")
    if interpreter is None:
        sys.exit(interpreters.missing(("3.6",)))
    environment = scratch / "python3.6"
    subprocess.run([interpreter.path, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    for wanted in ([OLD_PIP], OLDEST):
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
    return python


def write(name: str, python: str | Path, scratch: Path) -> None:
    """Write one stream, and next to it a file that says what wrote it."""
    folder = scratch / name
    folder.mkdir()
    bench = Bench(folder, python)
    try:
        facts = bench.hello().facts
        bench.workload("golden", WORKLOAD)
        for number in ROUNDS:
            for params in CASES:
                replicate, opened = bench.open("golden", params, round=number)
                assert isinstance(opened, Opened), opened
                bench.burst(replicate)
                bench.burst(replicate)
                bench.close(replicate)
        assert bench.client.quit()
    finally:
        bench.channel.close()
    shutil.copyfile(bench.stream, GOLDEN / f"{name}.arrow")
    writer = {"python": facts["python"], "pyarrow": facts["pyarrow"]}
    (GOLDEN / f"{name}.json").write_text(json.dumps(writer) + "\n")
    print(f"{name}: Python {writer['python']}, pyarrow {writer['pyarrow']}, {bench.stream.stat().st_size} bytes")


if __name__ == "__main__":
    main()

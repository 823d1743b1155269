"""A run folder refuses to mix runs, survives being cut short, and gives back what was put in."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import files
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.formats import RUN
from orchestrator.model import ArmKey, Calibrated, Claim, Discarded, Lost
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import read_stream
from tests.support.builders import (
    case,
    case_pair,
    claim,
    ended,
    expectation,
    finished,
    manifest,
    plan,
    rows,
    run_folder,
    target,
    version_pair,
    write_stream,
)

ENTRIES = [
    Calibrated(case="power", target=target("1.0.0"), warmup=3, bursts=2, calls=10, once=0, counts=False),
    ended("power", "1.0.0"),
    ended("power", "2.0.0", "died", replicate=2, how="exit", reason="µ\n{", log="a\nb"),
    Lost(target=target("2.0.0"), stage="worker", reason="it died 3 times", failure="worker", external=False),
    finished(how="", seconds=1.5),
]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def test_a_new_run_folder_has_its_parents_its_folders_and_what_began_it(tmp_path: Path):
    run = RunFolder.create(tmp_path / "deep" / "down" / "run")
    assert sorted(path.name for path in run.path.iterdir()) == [".lock", "begun.json", "logs", "results", "streams"]


def test_an_empty_folder_may_become_a_run(tmp_path: Path):
    assert RunFolder.create(tmp_path).results.is_dir()


def test_a_folder_that_holds_anything_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match=r"is not empty; choose another --output, or `tfcompare report"):
        RunFolder.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_is_not_written_over(run: RunFolder):
    run.write_begun(plan(), manifest(plan().targets))
    before = (run.path / "begun.json").read_bytes()
    with pytest.raises(UsageError, match="is not empty"):
        RunFolder.create(run.path)
    assert (run.path / "begun.json").read_bytes() == before


def leave_begun(run: RunFolder) -> None:
    (run.path / ".begun.json.0a1b2c3d").write_text("{")


def leave_copies(run: RunFolder) -> None:
    run.workloads.mkdir()
    (run.workloads / "half.py").write_text("def bui")


def leave_folders(run: RunFolder) -> None:
    for name in ("begun.json", ".lock"):
        (run.path / name).unlink()
    run.logs.rmdir()


@pytest.mark.parametrize("leave", [lambda run: None, leave_begun, leave_copies, leave_folders])
def test_a_run_that_ended_before_its_plan_leaves_its_folder_to_the_next(
    run: RunFolder, leave: Callable[[RunFolder], None]
):
    leave(run)
    with RunFolder.begin(run.path, ("run", "again")) as again:
        assert again.read_begun().command == ("run", "again")
        assert again.is_held
        assert not again.workloads.exists()
        assert {path.name for path in again.path.iterdir()} >= {"logs", "results", "streams"}


FOREIGN: dict[str, Callable[[RunFolder], object]] = {
    "a file": lambda run: (run.path / "thesis.tex").write_text("precious"),
    "a log": lambda run: (run.logs / "build-1.14.0.log").write_text("precious"),
    "results": lambda run: (run.results / "1.14.0-1").mkdir(),
    "a link": lambda run: (run.logs.rmdir(), run.logs.symlink_to(run.path.parent)),
    "workloads without a beginning": lambda run: (run.workloads.mkdir(), (run.path / "begun.json").unlink()),
    "a beginning that cannot be read": lambda run: (run.path / "begun.json").write_text("precious"),
    "a manifest": lambda run: run.write_manifest(manifest(plan().targets)),
    "a plan": lambda run: run.write_plan(plan()),
}


@pytest.mark.parametrize("add", FOREIGN.values(), ids=FOREIGN)
def test_a_folder_with_anything_more_is_not_taken_over(run: RunFolder, add: Callable[[RunFolder], object]):
    add(run)
    before = sorted(run.path.rglob("*"))
    with pytest.raises(UsageError, match="is not empty; choose another --output"):
        RunFolder.create(run.path)
    assert sorted(run.path.rglob("*")) == before


def test_a_run_that_lives_keeps_its_folder(run: RunFolder):
    with run.hold(), pytest.raises(UsageError, match=r"another tfcompare is measuring into .*, or choose another"):
        RunFolder.create(run.path)


@pytest.mark.parametrize(
    ("out", "reason"),
    [("file/run", "Not a directory"), ("file", "Not a directory|File exists"), ("x" * 300, "File name too long")],
    ids=["below a file", "a file itself", "a name that is too long"],
)
def test_a_place_that_cannot_be_written_is_told_with_the_reason(tmp_path: Path, out: str, reason: str):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=f"cannot write the run folder .*({reason}); choose another --output"):
        RunFolder.create(tmp_path / out)


@pytest.mark.parametrize("name", [".", "nowhere", "x" * 300], ids=["an empty folder", "nowhere", "a name too long"])
def test_opening_what_is_no_run_says_how_to_make_one(tmp_path: Path, name: str):
    with pytest.raises(
        UsageError, match=r"holds no run \(no plan\.json in it\); `tfcompare run --output FOLDER` makes one"
    ):
        RunFolder.open(tmp_path / name)


def test_plan_and_manifest_come_back_as_they_were_written(tmp_path: Path):
    one, other = case(style="eager"), case(style="function")
    asked = plan([one, other], threads=(1, 2), budget_s=60.0)
    run = run_folder(tmp_path / "run", asked)
    opened = RunFolder.open(run.path)
    assert opened.read_plan() == asked
    assert opened.read_manifest() == manifest(asked.targets)


def test_a_write_replaces_the_file_whole_and_leaves_no_temporary_one(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan())
    run.write_plan(plan(seed=2))
    assert run.read_plan().seed == 2
    assert sorted(path.name for path in run.path.iterdir()) == [
        ".lock",
        "begun.json",
        "logs",
        "manifest.json",
        "plan.json",
        "results",
        "streams",
    ]


def test_a_run_that_ended_before_its_first_round_is_told(run: RunFolder):
    with pytest.raises(
        ContractBroken, match=r"plan\.json is missing: it was removed, or the run ended before its first round"
    ):
        run.read_plan()
    with pytest.raises(
        ContractBroken, match=r"manifest\.json is missing: it was removed, or the run ended before its first round"
    ):
        run.read_manifest()


def test_a_plan_with_a_key_that_nobody_knows_is_not_read(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan())
    path = run.path / "plan.json"
    path.write_text(path.read_text().replace('"seed"', '"sead"'))
    with pytest.raises(ContractBroken, match="sead"):
        run.read_plan()


EAGER, FUNCTION, ELSEWHERE = case(style="eager"), case(style="function"), case(style="a,b]")


def claims() -> tuple[Claim, Claim]:
    """Return a claim about this device, whose cases the plan has, and one about another device."""
    here, elsewhere = (
        expectation(pair=case_pair(EAGER, candidate), effect="more", published=None)
        for candidate in (FUNCTION, ELSEWHERE)
    )
    return (
        claim(
            here, name="here", devices=("cpu",), cases=(EAGER, FUNCTION), holds=(ArmKey(EAGER.label, target("2.0.0")),)
        ),
        claim(elsewhere, name="elsewhere", devices=("gpu",), cases=(EAGER, ELSEWHERE)),
    )


def test_pairs_come_back_as_they_were_written_also_those_of_claims_about_another_device(tmp_path: Path):
    inside = replace(case_pair(EAGER, FUNCTION), metric="traces", margin=0.25)
    asked = plan([EAGER, FUNCTION], pairs=(inside,), claims=claims())
    assert run_folder(tmp_path / "run", asked).read_plan() == asked


@pytest.mark.parametrize("name", ["begun.json", "plan.json", "manifest.json"])
def test_a_file_of_another_number_says_which_it_is_and_what_to_do(tmp_path: Path, name: str):
    run = run_folder(tmp_path / "run", plan())
    read = {"begun.json": run.read_begun, "plan.json": run.read_plan, "manifest.json": run.read_manifest}[name]
    read()
    path = run.path / name
    path.write_text(path.read_text().replace(RUN.mark, "tfcompare.run/9"))
    with pytest.raises(ContractBroken) as caught:
        read()
    assert str(caught.value) == (
        f"{path} cannot be used: its format is tfcompare.run/9, and this tfcompare reads {RUN.mark}: read it with the "
        "tfcompare that wrote it, or start a new run"
    )
    path.write_text(json.dumps({"run": "x"}))
    with pytest.raises(ContractBroken, match=r"writes .it does not begin with the mark of its format"):
        read()


@pytest.mark.parametrize("name", ["plan.json", "manifest.json"])
def test_no_field_may_be_missing(tmp_path: Path, name: str):
    run = run_folder(tmp_path / "run", plan([EAGER, FUNCTION], claims=claims()))
    path = run.path / name
    written = json.loads(path.read_text())
    for field in written.keys() - {"format"}:
        path.write_text(json.dumps({key: value for key, value in written.items() if key != field}))
        with pytest.raises(ContractBroken, match=field):
            run.read_plan() if name == "plan.json" else run.read_manifest()


def test_damage_is_one_line_whatever_a_key_is_called(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([EAGER]))
    path = run.path / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "two\nlines\x1b[2J": 1}))
    with pytest.raises(ContractBroken, match=r"two lines\\x1b\[2J: ") as caught:
        run.read_plan()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"targets": ["1.0.0"]}, "power.style=eager. in 2.0.0 is compared, but is not one of the arms"),
        ({"targets": ["1.0.0", "2.0.0", "2.0.0"]}, "a case or a version appears twice"),
        ({"looks": [6, 6]}, "looks: not ascending numbers of rounds"),
        ({"looks": []}, "looks: not ascending numbers of rounds"),
        ({"looks": [0, 6]}, "looks: not ascending numbers of rounds"),
        ({"looks": [6, 10**9]}, "looks: not ascending numbers of rounds, or too many"),
        ({"looks": list(range(1, 1002))}, "looks: not ascending numbers of rounds, or too many"),
        ({"margin": 0.0}, "margin: 0.0 is not between 0 and 1"),
        ({"alpha": 1.5}, "alpha: 1.5 is not between 0 and 1"),
        ({"timeout_s": -1.0}, "timeout_s: -1.0 is not a positive number"),
        ({"judge": "gpu"}, "judge: Input should be 'wall' or 'cpu'"),
        ({"judge": "cpu", "device": "gpu"}, "a run on a GPU, or a run of claims, cannot be judged by CPU time"),
        ({"judge": "cpu", "metrics": ["step", "cpu"]}, "a run that is judged by CPU time cannot also compare cpu"),
    ],
)
def test_a_plan_that_no_run_would_have_made_is_damaged(tmp_path: Path, damage: dict[str, object], words: str):
    run = run_folder(tmp_path / "run", plan([EAGER]))
    path = run.path / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    with pytest.raises(ContractBroken, match=words):
        run.read_plan()


def test_a_file_names_the_cases_of_a_pair_by_label(tmp_path: Path):
    pairs = (version_pair(EAGER), replace(case_pair(EAGER, FUNCTION), metric="traces", margin=0.25))
    run = run_folder(tmp_path / "run", plan([EAGER, FUNCTION], pairs=pairs))
    eager = {"workload": "power", "params": [["style", "eager"]]}
    assert json.loads((run.path / "plan.json").read_text())["pairs"] == [
        {
            "kind": "target", "target": None, "baseline": "1.0.0", "candidate": "2.0.0", "case": eager, **eager,
            "metric": "time", "margin": None,
        },
        {
            "kind": "case", "target": "2.0.0", "baseline": "power[style=eager]", "candidate": "power[style=function]",
            "case": None, "workload": "power", "params": [], "metric": "traces", "margin": 0.25,
        },
    ]  # fmt: skip


def test_a_pair_of_a_case_that_the_plan_does_not_have_is_damaged(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([EAGER, FUNCTION], pairs=(case_pair(EAGER, FUNCTION),)))
    path = run.path / "plan.json"
    path.write_text(path.read_text().replace('"candidate": "power[style=function]"', '"candidate": "power[style=f]"'))
    with pytest.raises(ContractBroken, match=r"power.style=f. is not one of the cases"):
        run.read_plan()


@pytest.mark.parametrize("left", ["part", "rows"])
def test_what_was_measured_by_no_worker_is_a_damaged_line(run: RunFolder, left: str):
    run.record(ended("power"))
    assert len(run.read_journal().entries) == 1
    run.journal.write_text(run.journal.read_text().replace(f'"{left}":1', f'"{left}":null'))
    assert run.read_journal().entries == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"target": "2.0.0"}, "a pair has either a case"),
        ({"case": None}, "a pair has either a case"),
        ({"baseline": 1}, "baseline"),
        ({"pear": 1}, "pear"),
    ],
)
def test_a_pair_that_is_of_no_kind_is_not_read(tmp_path: Path, changes: dict[str, object], why: str):
    run = run_folder(tmp_path / "run", plan())
    written = json.loads((run.path / "plan.json").read_text())
    written["pairs"][0].update(changes)
    (run.path / "plan.json").write_text(json.dumps(written))
    with pytest.raises(ContractBroken, match=why):
        run.read_plan()


def test_the_journal_comes_back_in_order(run: RunFolder):
    for entry in ENTRIES:
        run.record(entry)
    assert list(run.entries()) == ENTRIES


def test_a_run_without_a_journal_has_no_entries(run: RunFolder):
    assert list(run.entries()) == []


def test_a_journal_cut_anywhere_gives_its_whole_lines(run: RunFolder):
    for entry in ENTRIES:
        run.record(entry)
    whole = run.journal.read_bytes()
    for size in range(len(whole) + 1):
        run.journal.write_bytes(whole[:size])
        assert list(run.entries()) == ENTRIES[: whole[:size].count(b"\n")]


BAD = [
    b"no JSON",
    b"\xff\xfe",
    b"\0" * 4096,
    b"one half\rof another",
    b"",
    b"[" * 100_000,
    b'{"kind": "paused"}',
    b'{"kind": "finished", "how": "", "seconds": "x"}',
]


@pytest.mark.parametrize("line", BAD, ids=lambda line: repr(line[:20]))
@pytest.mark.parametrize("place", [0, 2, len(ENTRIES)])
def test_a_line_that_is_no_entry_is_skipped_and_named_and_costs_no_other(run: RunFolder, line: bytes, place: int):
    for entry in ENTRIES:
        run.record(entry)
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:place], line + b"\n", *lines[place:]]))
    journal = run.read_journal()
    assert list(journal.entries) == ENTRIES
    where = f"line {place + 1} of {run.journal}"
    assert journal.skipped.startswith(
        f"the journal has 1 line that cannot be used: {where} is not what this tfcompare writes"
    )


def test_several_lines_that_are_no_entries_are_one_sentence(run: RunFolder):
    run.journal.write_text("x\ny\n")
    assert run.read_journal().skipped.startswith("the journal has 2 lines that cannot be used: line 1 of ")


def test_a_stream_leaves_its_workers_folder_once_the_worker_has_ended(run: RunFolder):
    first, second = run.worker_output.stream(target("2.0.0"), 1), run.worker_output.stream(target("2.0.0"), 2)
    for stream in (first, second):
        run.worker_output.create_results_folder(target("2.0.0"), stream.part)
        stream.path.touch()
    run.worker_output.settle(second)
    assert [(stream.name, stream.live) for stream in run.worker_output.streams()] == [
        ("results/2.0.0-1/stream.arrow", True),
        ("streams/2.0.0-2.arrow", False),
    ]
    assert [path.name for path in run.results.iterdir()] == ["2.0.0-1"]
    assert run.worker_output.parts() == {"2.0.0": 2}


def test_a_stream_in_a_folder_that_is_named_after_no_version_has_none(run: RunFolder):
    for name in ("+control-1", "2.0.0+control-1", "odd"):
        (run.settled / f"{name}.arrow").touch()
    assert [stream.target for stream in run.worker_output.streams()] == [None, None, "2.0.0+control"]
    assert run.worker_output.parts() == {"2.0.0+control": 1}


def test_a_folder_that_a_killed_host_left_empty_is_not_used_again(run: RunFolder):
    run.worker_output.create_results_folder(target("2.0.0"), 3)
    assert run.worker_output.parts() == {"2.0.0": 3}
    assert run.worker_output.streams() == []


def test_a_worker_that_wrote_no_stream_leaves_nothing(run: RunFolder):
    run.worker_output.create_results_folder(target("2.0.0"), 1)
    run.worker_output.settle(run.worker_output.stream(target("2.0.0"), 1))
    assert (run.worker_output.streams(), list(run.results.iterdir()), list(run.entries())) == ([], [], [])


def test_only_its_owner_may_look_into_a_run_folder(tmp_path: Path):
    old = os.umask(0o022)
    try:
        (tmp_path / "there").mkdir()
        for path in (tmp_path / "new", tmp_path / "there", tmp_path / "deep" / "down"):
            assert stat.S_IMODE(RunFolder.create(path).path.stat().st_mode) == 0o700
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o755


LINKED = ["report.html", ".lock", "journal.jsonl", "manifest.json", "logs/worker-1.0.0.log", "streams/1.0.0-1.arrow"]


@pytest.mark.parametrize("name", LINKED)
def test_a_run_folder_with_a_link_is_refused(tmp_path: Path, name: str):
    run = run_folder(tmp_path / "run", plan())
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(victim)
    with pytest.raises(UsageError, match="is a link; a run folder must not contain any"):
        RunFolder.open(run.path)
    with pytest.raises(UsageError, match="is a link"), run.hold():
        pass
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["results", "logs", "streams"])
def test_a_folder_of_a_run_that_is_a_link_is_refused(tmp_path: Path, name: str):
    run = run_folder(tmp_path / "run", plan())
    (run.path / name).rmdir()
    (run.path / name).symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is a link"):
        RunFolder.open(run.path)


def test_a_run_folder_with_a_pipe_is_refused(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan())
    os.mkfifo(run.path / "journal.jsonl")
    with pytest.raises(UsageError, match="is not a regular file"):
        RunFolder.open(run.path)


@pytest.mark.skipif(os.getuid() != 0, reason="it takes root to give a folder away")
def test_a_run_folder_of_another_user_is_not_measured_into(run: RunFolder):
    os.chown(run.path, 65534, 65534)
    with pytest.raises(UsageError, match=r"belongs to another user \(uid 65534\)"), run.hold():
        pass


def test_what_is_measured_into_has_its_journal_mended_before_anything_is_appended(run: RunFolder):
    for entry in ENTRIES:
        run.record(entry)
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole[:-30])
    with run.hold():
        run.record(ENTRIES[-1])
    assert list(run.entries()) == ENTRIES


def left(run: RunFolder, leave: Callable[[Path], object]) -> list[Discarded]:
    """What is journaled of a worker that left this."""
    leave(run.worker_output.create_results_folder(target("2.0.0"), 1))
    run.worker_output.settle(run.worker_output.stream(target("2.0.0"), 1))
    assert list(run.results.iterdir()) == []
    return [entry for entry in run.entries() if isinstance(entry, Discarded)]


def test_a_link_in_the_place_of_a_stream_is_not_followed_and_reported(run: RunFolder, tmp_path: Path):
    victim = write_stream(tmp_path / "victim.arrow", [rows()])
    before = victim.read_bytes()
    (told,) = left(run, lambda folder: (folder / "stream.arrow").symlink_to(victim))
    assert told.stream
    assert "it is a symbolic link" in told.what
    assert (run.worker_output.streams(), victim.read_bytes()) == ([], before)


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
def test_what_is_no_file_in_the_place_of_a_stream_is_reported(run: RunFolder, plant: Callable[[Path], None]):
    (told,) = left(run, lambda folder: plant(folder / "stream.arrow"))
    assert told.stream
    assert "it is not a regular file" in told.what


def test_files_that_do_not_belong_into_a_results_folder_are_removed_and_reported(run: RunFolder, tmp_path: Path):
    def leave(folder: Path) -> None:
        (folder / "stream.arrow").touch()
        (folder / "deep").mkdir()
        (folder / "deep" / "down").touch()
        (folder / "deep").chmod(0)
        (folder / "suid").touch()
        (folder / "suid").chmod(0o4755)
        (folder / ".2.0.0-1.arrow.tmp").symlink_to(tmp_path / "victim")
        os.close(os.open(os.fsencode(folder) + b"/caf\xe9", os.O_CREAT))

    (told,) = left(run, leave)
    assert (told.what, told.stream) == (".2.0.0-1.arrow.tmp, caf?, deep and 1 more", False)
    assert not (tmp_path / "victim").exists()
    assert [stream.name for stream in run.worker_output.streams()] == ["streams/2.0.0-1.arrow"]


def test_folders_in_folders_without_end_are_removed_all_the_same(run: RunFolder, tmp_path: Path):
    """As many as Python has no frames for; each is made from inside the one before."""
    folder = run.worker_output.create_results_folder(target("2.0.0"), 1)
    write_stream(folder / "stream.arrow", [rows()])
    deep = 5_000
    source = f"import os\nfor _ in range({deep}): os.mkdir('deep'); os.chdir('deep')\nos.chmod('.', 0)"
    subprocess.run([sys.executable, "-c", source], cwd=folder, check=True)
    run.worker_output.settle(run.worker_output.stream(target("2.0.0"), 1))
    assert not folder.exists()
    assert [entry.what for entry in run.entries() if isinstance(entry, Discarded)] == ["deep"]
    assert [stream.name for stream in run.worker_output.streams()] == ["streams/2.0.0-1.arrow"]


def test_a_stream_that_a_killed_host_left_behind_is_read_where_it_is(run: RunFolder, tmp_path: Path):
    folder = run.worker_output.create_results_folder(target("2.0.0"), 1)
    victim = write_stream(tmp_path / "victim.arrow", [rows()])
    (folder / "stream.arrow").symlink_to(victim)
    run.write_plan(plan())
    (stream,) = RunFolder.open(run.path).worker_output.streams()
    with pytest.raises(ContractBroken, match="it is a symbolic link"):
        read_stream(stream.path, stream.root)


def test_a_stream_that_cannot_be_taken_out_stays_where_it_is(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    folder = run.worker_output.create_results_folder(target("2.0.0"), 1)
    write_stream(folder / "stream.arrow", [rows()])

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace", full)
    run.worker_output.settle(run.worker_output.stream(target("2.0.0"), 1))
    assert [stream.name for stream in run.worker_output.streams()] == ["results/2.0.0-1/stream.arrow"]


def test_a_journal_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = run_folder(tmp_path / "run", plan())
    monkeypatch.setattr(files, "open_below", lambda *arguments: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(UsageError, match=r"cannot write .*journal\.jsonl: No space left.*continues the run"):
        run.record(ENTRIES[0])


def test_a_run_that_is_gone_says_so_whatever_is_written(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan())
    shutil.rmtree(run.path)
    for write in (
        lambda: run.record(ENTRIES[0]),
        run.sync,
        lambda: run.worker_output.create_results_folder(target("2.0.0"), 1),
        lambda: run.worker_output.create_worker_log(target("2.0.0")),
    ):
        with pytest.raises(UsageError, match=f"^{run.path} was removed or renamed while the run was in progress; "):
            write()
    assert not run.path.exists()


def test_folders_that_a_user_has_removed_come_back_with_the_next_worker(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan())
    shutil.rmtree(run.results)
    shutil.rmtree(run.logs)
    run.sync()
    assert run.worker_output.create_results_folder(target("2.0.0"), 1).is_dir()
    assert run.worker_output.create_worker_log(target("2.0.0")).parent.is_dir()


def test_of_several_that_make_one_run_folder_at_once_one_wins(tmp_path: Path):
    start, end, ended = threading.Barrier(8), threading.Barrier(8), []

    def create() -> None:
        start.wait()
        try:
            with RunFolder.begin(tmp_path / "run") as run:
                end.wait(60)
                ended.append(str(run.path))
        except UsageError as error:
            ended.append(str(error))
            end.wait(60)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended.count(str(tmp_path / "run")) == 1
    assert all("choose another --output" in words for words in ended if words != str(tmp_path / "run"))
    assert (tmp_path / "run" / "begun.json").exists()


def test_what_a_killed_host_had_not_finished_writing_is_no_stream(run: RunFolder):
    write_stream(run.settled / ".2.0.0-1.arrow.0a1b2c3d", [rows()])
    assert run.worker_output.streams() == []


def test_a_stream_that_cannot_be_read_for_a_moment_is_not_removed(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    write_stream(run.worker_output.create_results_folder(target("2.0.0"), 1) / "stream.arrow", [rows()])

    def fails(*arguments: object, **options: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "read", fails)
    run.worker_output.settle(run.worker_output.stream(target("2.0.0"), 1))
    monkeypatch.undo()
    (stream,) = run.worker_output.streams()
    assert read_stream(stream.path, stream.root)[0].num_rows == len(rows())


def test_a_run_is_held_while_it_is_in_progress(run: RunFolder):
    assert not run.is_held
    with run.hold():
        assert RunFolder(run.path).is_held
    assert not run.is_held


@pytest.mark.skipif(os.getuid() != 0, reason="it takes root to give a folder away")
def test_a_folder_of_another_user_does_not_become_a_run(tmp_path: Path):
    os.chown(tmp_path, 65534, 65534)
    mode = tmp_path.stat().st_mode
    with pytest.raises(UsageError, match="belongs to another user; choose another --output"):
        RunFolder.create(tmp_path)
    assert (tmp_path.stat().st_mode, list(tmp_path.iterdir())) == (mode, [])

"""The files of a run folder as they travel: only those that a run has, and none outside of its folder."""

import os
from pathlib import Path

import pytest

from orchestrator.errors import ContractBroken
from orchestrator.results.part_files import LOG_BYTES, check_files, read_files, write_files

WHOLE = {
    "begun.json": b"1", "plan.json": b"2", "manifest.json": b"3", "journal.jsonl": b"4",
    "streams/1.14.0-1.arrow": b"5", "results/2.0.0-1/stream.arrow": b"6", "logs/worker-1.14.0.log": b"7",
}  # fmt: skip


def test_files_travel_and_arrive(tmp_path: Path):
    write_files(tmp_path / "there", WHOLE)
    found = read_files(tmp_path / "there")
    assert found == WHOLE
    check_files(found)


def test_what_is_no_part_of_a_run_stays_where_it_is(tmp_path: Path):
    write_files(tmp_path, {**WHOLE, "workloads/own.py": b"x", ".lock": b"", "streams/.half.arrow": b"x"})
    os.symlink("/etc/passwd", tmp_path / "logs" / "more.log")
    os.mkfifo(tmp_path / "logs" / "pipe.log")
    assert read_files(tmp_path) == WHOLE


def test_of_a_long_log_the_end_travels(tmp_path: Path):
    write_files(tmp_path, {"logs/a.log": b"x" * (2 * LOG_BYTES) + b"end"})
    found = read_files(tmp_path)["logs/a.log"]
    assert len(found) == LOG_BYTES
    assert found.endswith(b"end")


@pytest.mark.parametrize(
    "name",
    [
        "../plan.json", "/etc/passwd", "streams/../../x.arrow", "workloads/own.py", "streams/a/b.arrow", ".lock",
        "streams/.a.arrow", "plan.json\0", "logs/" + "a" * 300 + ".log", "results/a/other.arrow", "",
    ],
)  # fmt: skip
def test_a_name_that_no_run_has_is_refused(name: str):
    with pytest.raises(ContractBroken, match="it sent a file that no run has"):
        check_files({name: b""})


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str):
    with pytest.raises(ContractBroken):
        write_files(tmp_path / "in", {name: b"x"})
    assert not (tmp_path / "out").exists()


def test_more_files_than_a_run_has_are_refused():
    with pytest.raises(ContractBroken, match="it sent more than"):
        check_files({f"streams/a-{number}.arrow": b"" for number in range(20_001)})

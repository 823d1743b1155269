"""Runs of workloads that attack, on either engine: what they cost, and what is left of them."""

import re
from pathlib import Path

from tests.support.end_to_end import Answer, compare, outcomes

HOSTILE = Path(__file__).parents[1] / "faults" / "hostile"
VERSIONS = ("1.14.0", "2.0.0")


def attack(tfcompare: str, out: Path, *cases: str, engine: tuple[str, ...], code: int = 0) -> tuple[Answer, str]:
    """Measure hostile cases and an innocent one in two versions; return the answer and stderr."""
    flags = ["--versions", "1.14,2.0", "--rounds", "2", "--quiet", "--workload-folder", HOSTILE, "--output", out]
    names = [part for case in cases for part in ("--case", case)]
    got, answer, stderr = compare(tfcompare, *flags, *names, *engine)
    assert got == code, stderr
    assert "Traceback" not in stderr
    return answer, stderr


def reasons(answer: Answer, workload: str) -> list[str]:
    """Why the arms of a workload died."""
    return [arm["reason"] for arm in answer["arms"] if arm["workload"] == workload and arm["outcome"] == "died"]


def check_flood(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """A line without end costs the replicate that writes it."""
    answer, _ = attack(tfcompare, out, "flood[way=own]", "innocent", engine=engine, code=6)
    found = outcomes(answer)
    assert {found["innocent", version] for version in VERSIONS} == {"measured"}
    assert reasons(answer, "flood") == ["its answer has more than 1 MiB; ended"] * 2


def check_loud(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """Of a hundred megabytes that are printed, 64 KiB stay per replicate."""
    answer, _ = attack(tfcompare, out, "loud", engine=engine)
    assert set(outcomes(answer).values()) == {"measured"}
    for version in VERSIONS:
        log = (out / "logs" / f"worker-{version}.log").read_text()
        replicates = log.count("loud to the end")
        assert replicates >= 2
        assert log.count(" bytes that were printed before this]") == replicates
        assert log.count("x" * 100) <= replicates * 2**16 / 100


def check_paint(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """What a terminal would obey is text in a log, on each engine the same text."""
    answer, _ = attack(tfcompare, out, "paints", engine=engine)
    assert set(outcomes(answer).values()) == {"measured"}
    for version in VERSIONS:
        log = (out / "logs" / f"worker-{version}.log").read_bytes().decode()
        assert {letter for letter in log if not letter.isprintable()} <= {"\n", "\t"}
        orders = "\\x1b]0;owned\\x07 \\x1b]52;c;cm0gLXJmIH4=\\x07 \\x9b31m \\x1b[2J\tafter the orders\n"
        assert log.count(orders) >= 4
        assert log.count("red 1/2\n2/2\ncaf\u00e9 \\xff\n") >= 2


def check_litter(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """Files without number among the results cost the worker; what it left is removed and reported."""
    answer, _ = attack(tfcompare, out, "innocent", "litters", engine=engine, code=6)
    found = outcomes(answer)
    assert {found["innocent", version] for version in VERSIONS} == {"measured"}
    for reason in reasons(answer, "litters"):
        assert "broke the contract: its results folder holds more than 500 files" in reason
    assert [path.name for path in (out / "results").iterdir()] == []
    assert any("unexpected files from the results of" in warning for warning in answer["warnings"])


def check_bomb(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """A compressed stream is refused before it is unpacked."""
    answer, stderr = attack(tfcompare, out, "bomb", engine=engine, code=7)
    assert {arm["rounds"] for arm in answer["arms"]} == {0}
    assert "holds a compressed batch, which no worker writes" in stderr


def check_wipe(tfcompare: str, out: Path, engine: tuple[str, ...]) -> None:
    """Results that a workload removes are missed by number; nothing else comes of it."""
    answer, stderr = attack(tfcompare, out, "wipes", "innocent", engine=engine, code=7)
    assert {arm["rounds"] for arm in answer["arms"] if arm["workload"] == "wipes"} == {0}
    for version in VERSIONS:
        assert re.search(f"{version}: the results of \\d+ replicates are lost: measured, and in no file", stderr)


CHECKS = {
    "flood": check_flood,
    "loud": check_loud,
    "paint": check_paint,
    "litter": check_litter,
    "bomb": check_bomb,
    "wipe": check_wipe,
}

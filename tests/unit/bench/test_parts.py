"""The parts of docs/benchmarks.md: what is kept of them, and which are older than the code they measure."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bench import parts
from bench.figures import Figure
from bench.git import current_commit
from bench.parts import PARTS, Measurement, Part
from bench.stale import NO_GIT, list_stale
from tests.conftest import ROOT

MADE = {"load": Part("Load", ("measured", ":(glob)side/*.py"))}


def measurement(day: str = "2026-11-26", value: float = 8.2, **changes: object) -> Measurement:
    made = Measurement(
        day=day, machine={"cpu": "AMD EPYC"}, commits=("0123abcd",), recorded=True, uncommitted=False,
        body="What was done.\n\nAnd how.", figures=(Figure("report", value, "s", limit=5.0),),
    )  # fmt: skip
    return replace(made, **changes)


def test_what_was_measured_is_read_as_it_was_written(tmp_path: Path):
    assert parts.read("load", tmp_path) is None
    kept = parts.write("load", measurement(), tmp_path)
    assert parts.read("load", tmp_path) == kept
    assert kept.before is None


def test_the_figures_of_an_earlier_day_are_kept_beside_those_of_today(tmp_path: Path):
    parts.write("load", measurement("2026-11-21", 1.88), tmp_path)
    parts.write("load", measurement("2026-11-26", 6.07), tmp_path)
    # The second one of a day replaces the first, and not what was before that day.
    kept = parts.write("load", measurement("2026-11-26", 8.2), tmp_path)
    assert kept.before is not None
    assert (kept.before.day, kept.before.values) == ("2026-11-21", {"report": 1.88})
    page = parts.benchmarks_page(tmp_path)
    assert "| report | 8.20 s | at most 5.00 s | **missed by 3.2 s** | **worse**: 1.88 s on 2026-11-21 |" in page
    assert "What was done.\n\nAnd how.\n\n| figure" in page


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "on 2026-11-26, commit `0123abcd`: cpu AMD EPYC."),
        ({"commits": ("0123abcd", "4567abcd")}, "commit `0123abcd` and `4567abcd`: "),
        ({"uncommitted": True}, "commit `0123abcd`, with changes that were not committed: "),
        ({"commits": ()}, "outside of a git clone: "),
        ({"recorded": False}, "published in commit `0123abcd`; which commit was measured was not recorded yet: "),
    ],
)
def test_a_part_names_its_commit(changes, told):
    assert told in measurement(**changes).stamp("load")


class Clone:
    """A repository with two folders of code."""

    def __init__(self, folder: Path) -> None:
        self.root, self.stored = folder / "clone", folder / "stored"
        self.root.mkdir()
        self.git("init", "--quiet")
        for path in ("measured/code.py", "side/code.py", "side/below/code.py", "other.py"):
            self.change(path)
        self.commit()

    def git(self, *arguments: str) -> str:
        name = ("-c", "user.name=made", "-c", "user.email=made@localhost")
        done = subprocess.run(["git", *name, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def change(self, path: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as written:
            written.write("changed\n")

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "made")
        return self.git("rev-parse", "--short=8", "HEAD")

    def measured(self, *commits: str) -> None:
        parts.write("load", measurement(commits=commits), self.stored)

    def listed(self) -> list[str]:
        return list(list_stale(self.root, self.stored, MADE))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize("path", ["measured/code.py", "measured/new.py", "side/code.py"])
def test_a_part_whose_code_has_changed_since_is_stale(clone: Clone, path: str):
    clone.measured(clone.git("rev-parse", "HEAD"))
    assert clone.listed() == ["current: load"]
    clone.change(path)
    last = clone.commit()
    [line, current] = clone.listed()
    assert line.startswith("load: stale: measured on 2026-11-26; 1 commit to its code since, the last ")
    assert clone.git("rev-parse", "--short", last) in line
    assert current == "current: none"


@pytest.mark.parametrize("path", ["other.py", "side/below/code.py"])
def test_a_part_is_current_whatever_else_has_changed(clone: Clone, path: str):
    clone.measured(clone.git("rev-parse", "HEAD"))
    clone.change(path)
    clone.commit()
    assert clone.listed() == ["current: load"]


def test_the_oldest_of_several_commits_counts(clone: Clone):
    first = clone.git("rev-parse", "HEAD")
    clone.change("measured/code.py")
    clone.measured(first, clone.commit())
    assert "1 commit to its code since" in clone.listed()[0]


def test_what_git_does_not_know_is_said_in_one_line(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert clone.listed() == ["load: never measured", "current: none"]
    clone.measured("0123abcd")
    assert clone.listed()[0] == "load: measured on 2026-11-26, at a commit that this clone does not have"
    clone.measured()
    assert clone.listed()[0] == "load: measured on 2026-11-26, outside of a git clone"
    clone.measured(clone.git("rev-parse", "HEAD"))
    clone.change("measured/code.py")
    clone.change("other.py")
    assert clone.listed()[1:] == ["Changes to 1 file of this code are not committed, and not in this list."]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert list(list_stale(tmp_path / "elsewhere", clone.stored, MADE)) == [NO_GIT]
    monkeypatch.setenv("PATH", "")
    assert list(list_stale(clone.root, clone.stored, MADE)) == [NO_GIT]
    assert current_commit() == ""


def test_every_part_measures_code_that_exists():
    for name, part in PARTS.items():
        assert (ROOT / "bench" / f"{name}.py").exists() or (ROOT / "bench" / name / "__init__.py").exists()
        assert part.code
        for path in part.code:
            assert list(ROOT.glob(path.removeprefix(":(glob)"))), path

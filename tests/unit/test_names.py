"""One name per thing: words that once stood beside those of docs/glossary.md are nowhere."""

import ast
import re
import subprocess

import pytest

from tests.conftest import ROOT

# The changelog tells what there was, and this is the list; the others are no texts of ours.
LEFT_OUT = re.compile(r"CHANGELOG\.md|tests/unit/test_names\.py|.*\.(arrow|parquet|png|svg|lock|txt)")
# What the word is now, and where it still means something else.
OLD = {
    "steady": (r"steady(?! state)", "time, a call after the warm-up, or a burst", ()),
    "peak rss": (r"(?i)peak.?rss", "memory, or resident for all that is resident", ()),
    "contrast": (
        r"(?i)contrasts?(?!_ratio)", "comparison",
        # That of colours.
        ("augmentation", "docs/claims.md", "docs/workloads.md", "workloads/claims/found.json"),
    ),
    "pair of versions": (r"VersionPair", "TargetPair", ()),
    "run directory": (
        r"(?i)\b(run|workload|history|results)[-_ ]?director(y|ies)\b|workload[-_]dir\b|\brundir\b", "run folder", (),
    ),
    # Tests may hold one in the hand; on a phone, a table is read as cards.
    "card": (
        r"(?i)\bcards?\b", "GPU",
        ("tests/", "docs/claims.md", "docs/html-report.md", "page.html.j2", "bench/measured"),
    ),
}  # fmt: skip


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if not LEFT_OUT.fullmatch(path)]


@pytest.mark.parametrize("old", OLD)
def test_an_old_word_is_nowhere(old: str):
    pattern, now, elsewhere = OLD[old]
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in tracked()
        if not any(word in path for word in elsewhere)
        for number, line in enumerate((ROOT / path).read_text(errors="ignore").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not found, f"{old} is {now} today"


@pytest.mark.parametrize(
    ("old", "line", "is_old"),
    [
        ("steady", "median steady time", True), ("steady", "no steady state: it moves", False),
        ("peak rss", "peak_rss_kb", True), ("peak rss", "peak memory", False),
        ("contrast", "CONTRASTS = {}", True), ("contrast", "contrast_ratio(one, other)", False),
        ("pair of versions", "VersionPair", True), ("pair of versions", "TargetPair", False),
        ("run directory", "--workload-dir", True), ("run directory", "the working directory", False),
        ("card", "on both cards", True), ("card", "discarded", False),
    ],
)  # fmt: skip
def test_old_words_are_told_from_others(old: str, line: str, is_old: bool):
    assert bool(re.search(OLD[old][0], line)) == is_old


def test_engines_are_named_in_one_place():
    named = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "orchestrator").rglob("*.py")
        if path.relative_to(ROOT / "orchestrator").parts[0] not in ("engines", "options.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in ("docker", "venv")
    }
    assert named == set()

"""Find phrases that read as if translated, in everything that a person reads.

    python tools/english.py            every place, with what to write instead; fails if there is one
    python tools/english.py docs       only below these paths

In Python files, only comments and strings are read; in claims, quotes from their sources are left alone. A phrase that
is right in its place is listed in KEPT.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

UNITS = (
    "arm|call|case|command|container|core|day|file|image|line|month|night|process|replicate|round|row|run|series|set|step|"
    "table|target|version|visit|worker|workload"
)
# What not to write, and what to write instead.
PHRASES = (
    (r"\banew\b", "again, or new"),
    (r"\bto be had\b", "available"),
    (r"\bother ones\b", "different, or changed"),
    (r"\bbears? out\b", "confirms"),
    (r"\b(?:came of|comes to)\b", "the result, or the total"),
    (r"\bof (?:its|their|his|your|one's) own\b", "own, separate, or nothing"),
    (r"\bso (?:many|much)\b", "this many, or the number"),
    (r"\bonce more\b", "again"),
    (r"\b(?:goes|go|went|going) on\b", "continue"),
    (r"\b(?:is|are|was|were|be|been|being) (?:told|said)\b", "report, print, warn or name"),
    (r"\bhow it stands\b|\bstands? (?:beside|in|on|at|there|above|below|alone|next|open)\b", "is"),
    (r"\bbeside\b", "next to, in addition to, or as well as"),
    (r"\b(?:whoever|somebody|nobody)\b", "name who does it, or use the passive"),
    (r"\ball the same\b", "anyway, or also"),
    (rf"\b(?:an?|one) [\w-]+ an? (?:{UNITS})\b", "one ... per ..."),
)
RULES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in PHRASES]
TEXTS = (".md", ".j2", ".js", ".sh", ".toml")
FOLDERS = ("bench", "docs", "images", "orchestrator", "tfcompare", "tools", "workloads")
PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "pyproject.toml")
# They quote what others wrote.
QUOTING = ("docs/claims.md", "workloads/claims/", "docs/benchmarks.md", "tools/english.py")
# Places where the words mean what they say.
KEPT = frozenset(
    {
        # A kind of step, as searches and journals store it.
        ("orchestrator/model/__init__.py", "beside"),
        ("orchestrator/model/journal.py", "beside"),
        ("orchestrator/bisect/search.py", "beside"),
        ("orchestrator/bisect/wording.py", "beside"),
        # A variable.
        ("bench/peers/cost.py", "beside"),
    }
)


def main() -> None:
    below = tuple(sys.argv[1:]) or FOLDERS + PAGES
    hits = [hit for path in files() if path.startswith(below) for hit in check(path)]
    print("\n".join(hits) or "no phrase that reads as if translated")
    sys.exit(bool(hits))


def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    ours = (path for path in listed if path.startswith(FOLDERS) or path in PAGES)
    return [path for path in ours if path.endswith((".py", *TEXTS)) and not path.startswith(QUOTING)]


def check(path: str) -> Iterator[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    for line, part in python_texts(text) if path.endswith(".py") else enumerate(text.splitlines(), 1):
        for pattern, instead in RULES:
            for match in pattern.finditer(part):
                phrase = re.sub(r"\s+", " ", match[0].lower())
                if (path, phrase) not in KEPT:
                    yield f"{path}:{line + part[: match.start()].count(chr(10))}: {phrase!r}: write {instead}"


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a Python file, each with its first line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


if __name__ == "__main__":
    main()

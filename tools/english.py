"""Find phrases that read as if translated, in everything that a person reads.

    python tools/english.py            every place, with what to write instead; fails if there is one
    python tools/english.py docs       only below these paths

In Python files, only comments and strings are read; in claims, quotes from their sources are left alone. A few words
are names in the code and wrong only in what users read: pages, templates, help and sentences that are printed. A phrase
that is right in its place is listed in KEPT.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
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
# Words of the code that users never see.
FOR_USERS = (
    (r"\bnights? (?:runs?|begins?|began|starts?|fails?|failed|hung|hangs|takes?|was|were|lists?|gave|of (?!a )\w+,)\b",
     "nightly run"),
    (r"\b(?:measures?|runs?|ends?|waits? for|measured) (?:a|an|the|each|another|this) nights?\b", "nightly run"),
    (r"\bfor nights\b(?! (?:from|since))|\bmissed nights?\b|\bnight's run\b", "nightly run"),
)  # fmt: skip


def compiled(phrases: tuple[tuple[str, str], ...]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in phrases]


RULES, USER_RULES = compiled(PHRASES), compiled(FOR_USERS)
# Pages and code for those who change tfcompare, or who call it from Python, where the words are names.
FOR_DEVELOPERS = (
    "docs/architecture.md",
    "docs/library.md",
    "CONTRIBUTING.md",
    "bench/",
    "images/",
    "tools/",
    "workloads/",
)
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
        # Schedules that are installed hold it, and are compared with what tfcompare would write.
        ("orchestrator/nightly/schedule/units.py", "measures a night"),
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
    yield from find(path, python_texts(text) if path.endswith(".py") else enumerate(text.splitlines(), 1), RULES)
    if not path.startswith(FOR_DEVELOPERS) and path.endswith((".py", ".md", ".j2")):
        yield from find(path, printed(text) if path.endswith(".py") else prose(text), USER_RULES)


def find(path: str, parts: Iterable[tuple[int, str]], rules: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    for line, part in parts:
        for pattern, instead in rules:
            for match in pattern.finditer(part):
                phrase = re.sub(r"\s+", " ", match[0].lower())
                if (path, phrase) not in KEPT:
                    yield f"{path}:{line + part[: match.start()].count(chr(10))}: {phrase!r}: write {instead}"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page without code, which has names of files, columns and flags in it."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|\{[{%].*?[%}]\}|<[^>]*>", "", line)


def printed(source: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences in a Python file that users see: strings with blanks, and docstrings of commands."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not any("command" in ast.dump(decorator) for decorator in getattr(node, "decorator_list", ()))
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if " " in node.value:
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value)


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a Python file, each with its first line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


if __name__ == "__main__":
    main()

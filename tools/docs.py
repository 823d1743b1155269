"""Write the pages of docs/ that repeat what other files state; `--check` reports pages that are out of date."""

import argparse
import ast
from collections.abc import Iterable
from pathlib import Path

from gpu_page import gpu_page
from versions_page import versions_page

from orchestrator.catalog import claims, workloads
from orchestrator.catalog.selectors import expand, parse_selector
from orchestrator.model import Claim, Expectation, Workload
from orchestrator.reports.claims import format_expected, subject_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
WRITTEN = "<!-- Written by `python tools/docs.py`; change the files that it reads. -->"

CLAIMS_HEAD = """# Claims

What has been said in public about TensorFlow's speed, as files in `workloads/claims/`, each with the contrast that
tests it. `tfcompare reproduce` tests them all, `tfcompare reproduce predict-after-compile` one, `--suite seed` those of
the studies that this tool began with; `--list` shows them.

| verdict | what it means |
|---|---|
| `reproduced` | every statement of the claim was seen here |
| `not reproduced` | at least one was not: it is the other way round, or smaller than what has to be seen |
| `inconclusive` | neither could be shown; the reason says why |
| `needs a GPU` | it is not said of the device that was measured |

How much of an effect has to be seen follows from one rule and is not set claim by claim, so that none can be tuned
until it passes. Where the source gives a ratio, at least half of it on the log scale has to be seen (its square root),
because machines differ: of a published 10x, 3.16x. Where it gives only a direction, more than 5 %. `same` means within
5 %, and `within 1.25x` where the source says `about`. A ratio is seen when its interval leaves out 1 and its estimate
is at least so large; two arms are the same when the interval lies inside, and not the same when all of it lies outside.
Looks, intervals and rounds are as in every run, with one look more, after three rounds. `--suite seed` measures for at
most 19 minutes unless `--budget` says otherwise.

## A claim of your own

One file in `workloads/claims/`, named for the claim:

```toml
{example}```

A contrast names a `version` and two cases, or a `case` and two versions. `expected` is `slower`, `faster` or `same`;
with `metric = "peak_rss"` or `"traces"` it is `more`, `less` or `same`; `first` and `build` are metrics too. Several
`[[contrasts]]` all have to hold. `[[holds]]` names a `version` and a `case` that checks itself: its step raises an
`AssertionError` where the statement is false.
"""


def workloads_page() -> str:
    known = workloads.all_workloads()
    named = {
        name: {parse_selector(text, known).workload for text in suite.cases}
        for name, suite in workloads.all_suites().items()
    }
    lines = [
        "# Workloads",
        WRITTEN,
        "",
        "What TensorFlow is made to do, a file each in `workloads/suite/`. How to write one:",
        "[a workload of your own](own-workload.md).",
        "",
        "| workload | what it does | cases | suites |",
        "|---|---|---|---|",
    ]
    for workload in known.values():
        cases = len(expand(parse_selector(workload.name, known), workload))
        listed = ", ".join(suite for suite, names in named.items() if workload.name in names)
        lines.append(f"| [`{workload.name}`](#{workload.name}) | {workload.summary} | {cases} | {listed} |")
    for workload in known.values():
        lines += ["", *_workload(workload)]
    return "\n".join(lines) + "\n"


def _workload(workload: Workload) -> list[str]:
    docstring = ast.get_docstring(ast.parse(workload.path.read_text())) or ""
    lines = [f"## {workload.name}", "", workload.summary]
    if rest := docstring.partition("\n")[2].strip("\n"):
        lines += ["", "```text", rest, "```"]
    if workload.params:
        lines += ["", "| parameter | values |", "|---|---|"]
        for name, values in workload.params.items():
            lines.append(f"| `{name}` | {', '.join(f'`{value}`' for value in values)} |")
    for name, base in workload.contrasts.items():
        lines += ["", f"Inside each version, every `{name}` is compared with `{base}`."]
    if workload.exclude:
        told = "; ".join(", ".join(f"`{name}={value}`" for name, value in rule.items()) for rule in workload.exclude)
        lines += ["", f"Left out: {told}."]
    return lines


def claims_page() -> str:
    known = claims.all_claims(workloads.all_workloads())
    example = (claims.CLAIMS / "predict-after-compile.toml").read_text()
    parts = [CLAIMS_HEAD.replace("{example}", example).replace("# Claims\n", f"# Claims\n{WRITTEN}\n", 1)]
    titles = {"seed": "The claims of the first studies", "reported": "The claims of single reports"}
    for suite in claims.SUITES:
        parts.append(f"## {titles[suite]}\n")
        parts += [_claim(claim) for claim in known.values() if claim.suite == suite]
    return "\n".join(parts).rstrip() + "\n"


def _claim(claim: Claim) -> str:
    source = f"<{claim.source}>" if claim.source.startswith("http") else claim.source
    facts = [f"Source: {source}", f"said of: {' and '.join(claim.devices)}"]
    if claim.withdrawn:
        facts.append("withdrawn by its own reporter")
    lines = [f"### {claim.name}", "", f"**{_capital(claim.title)}.** {' '.join(claim.statement.split())}", ""]
    lines += ["; ".join(facts) + ".", ""]
    lines += _tests(claim.expectations)
    lines += [f"- in {version}, `{label}` holds" for label, version in claim.holds]
    return "\n".join(lines) + "\n"


def _tests(expectations: Iterable[Expectation]) -> list[str]:
    return [f"- `{subject_of(one.pair)}`: {format_expected(one)}" for one in expectations]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PAGES = {
    "workloads.md": workloads_page,
    "claims.md": claims_page,
    "versions.md": lambda: versions_page(WRITTEN),
    "gpu.md": lambda: gpu_page((DOCS / "gpu.md").read_text()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say which pages are stale; exit 1 if any is")
    checking = parser.parse_args().check
    stale = [name for name, page in PAGES.items() if not _is_current(name, page())]
    for name in stale:
        if checking:
            print(f"docs/{name} is stale: run python tools/docs.py")
        else:
            (DOCS / name).write_text(PAGES[name]())
            print(f"docs/{name}")
    raise SystemExit(1 if stale and checking else 0)


def _is_current(name: str, text: str) -> bool:
    path = DOCS / name
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    main()

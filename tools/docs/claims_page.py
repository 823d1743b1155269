"""docs/claims.md: what has been said about TensorFlow's speed, and the contrasts that test it."""

from collections.abc import Iterable

from orchestrator.catalog import claims, workloads
from orchestrator.model import Claim, Expectation
from orchestrator.reports.claims import format_expected, format_said_of, subject_of
from tools.docs import WRITTEN

CLAIMS_HEAD = """# Claims

What has been said in public about TensorFlow's speed, as files in `workloads/claims/`, each with the contrast that
tests it. `tfcompare reproduce` tests them all, `tfcompare reproduce predict-after-compile` one, `--suite seed` those of
the studies that this tool began with; `--list` shows them.

| verdict | what it means |
|---|---|
| `reproduced` | every statement of the claim was seen here |
| `not reproduced` | at least one was not: it is the other way round, or smaller than what has to be seen |
| `inconclusive` | neither could be shown; the reason says why |
| `needs a GPU` | it cannot be tested on the device that was measured |

How much of an effect has to be seen follows from one rule and is not set claim by claim, so that none can be tuned
until it passes. If the source gives a ratio for this workload (`published`), at least half of it on the log scale
has to be seen (its square root), because machines differ: of a published 10x, 3.16x. If the source gives only a
direction, more than 5 % has to be seen. `same` means within 5 %, and `within 1.25x` where the source says `about`. A
ratio is seen when its interval leaves out 1 and its estimate is at least so large; two arms are the same when the
interval lies inside, and not the same when all of it lies outside.

Words for how much are read by one rule: {readings}.
Half of that on the log scale has to be seen as well. It is printed as `read as 10x`, because nobody published it.

Looks, intervals and rounds are as in every run. `--suite seed` measures for at most 19 minutes unless `--budget` says
otherwise.

## A claim of your own

One file in `workloads/claims/`, named for the claim:

```toml
{example}```

A contrast names a `version` and two cases, or a `case` and two versions. `expected` is `slower`, `faster` or `same`;
with `metric = "peak_rss"` or `"traces"` it is `more`, `less` or `same`; `first` and `build` are metrics too. Several
`[[contrasts]]` all have to hold. `[[holds]]` names a `version` and a `case` that checks itself: its step raises an
`AssertionError` where the statement is false.

`said_of` lists the devices and systems that the source speaks of, and `devices` where the claim may be tested. The two
differ often: many reports come from one GPU, and the overhead that they describe can be seen on a CPU as well. `source`
is a link or a title, then in brackets the passage, or the author of the comment and its date. `published` is only for a
ratio that the source gives for this workload. `read_as` is for words; the statement has to quote them.
"""


def claims_page() -> str:
    all_claims = claims.all_claims(workloads.all_workloads())
    example = (claims.CLAIMS / "graph-for-small-ops.toml").read_text()
    readings = ", ".join(f'"{words}" as {ratio:g}x' for words, ratio in claims.READ_AS.items())
    head = CLAIMS_HEAD.replace("{example}", example).replace("{readings}", readings)
    parts = [head.replace("# Claims\n", f"# Claims\n{WRITTEN}\n", 1)]
    titles = {"seed": "The claims of the first studies", "reported": "The claims of single reports"}
    for suite in claims.SUITES:
        parts.append(f"## {titles[suite]}\n")
        parts += [_claim(claim) for claim in all_claims.values() if claim.suite == suite]
    return "\n".join(parts).rstrip() + "\n"


def _claim(claim: Claim) -> str:
    facts = [f"Source: {_link(claim.source)}", format_said_of(claim), f"tested on: {' and '.join(claim.devices)}"]
    if claim.withdrawn:
        facts.append("withdrawn by its own reporter")
    lines = [f"### {claim.name}", "", f"**{_capital(claim.title)}.** {' '.join(claim.statement.split())}", ""]
    lines += [". ".join(_capital(fact) for fact in facts if fact) + ".", ""]
    lines += _tests(claim.expectations)
    lines += [f"- in {version}, `{label}` holds" for label, version in claim.holds]
    return "\n".join(lines) + "\n"


def _tests(expectations: Iterable[Expectation]) -> list[str]:
    return [f"- `{subject_of(expectation.pair)}`: {format_expected(expectation)}" for expectation in expectations]


def _link(source: str) -> str:
    """Return a source with its address, if it starts with one, as a link."""
    address, space, passage = source.partition(" ")
    return f"<{address}>{space}{passage}" if address.startswith("http") else source


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

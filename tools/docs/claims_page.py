"""docs/claims.md: what has been said about TensorFlow's speed, and the contrasts that test it."""

from collections.abc import Iterable

from orchestrator.catalog import claims, workloads
from orchestrator.model import Claim, Expectation
from orchestrator.reports.claims import format_expected, subject_of
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
| `needs a GPU` | it is not said of the device that was measured |

How much of an effect has to be seen follows from one rule and is not set claim by claim, so that none can be tuned
until it passes. Where the source gives a ratio, at least half of it on the log scale has to be seen (its square root),
because machines differ: of a published 10x, 3.16x. Where it gives only a direction, more than 5 %. `same` means within
5 %, and `within 1.25x` where the source says `about`. A ratio is seen when its interval leaves out 1 and its estimate
is at least so large; two arms are the same when the interval lies inside, and not the same when all of it lies outside.
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
"""


def claims_page() -> str:
    all_claims = claims.all_claims(workloads.all_workloads())
    example = (claims.CLAIMS / "predict-after-compile.toml").read_text()
    parts = [CLAIMS_HEAD.replace("{example}", example).replace("# Claims\n", f"# Claims\n{WRITTEN}\n", 1)]
    titles = {"seed": "The claims of the first studies", "reported": "The claims of single reports"}
    for suite in claims.SUITES:
        parts.append(f"## {titles[suite]}\n")
        parts += [_claim(claim) for claim in all_claims.values() if claim.suite == suite]
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
    return [f"- `{subject_of(expectation.pair)}`: {format_expected(expectation)}" for expectation in expectations]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

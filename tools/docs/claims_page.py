"""docs/claims.md: public claims about TensorFlow's speed, and the comparisons that test them."""

import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator.catalog import claims, workloads
from orchestrator.catalog.found import all_found
from orchestrator.model import Claim
from orchestrator.reports.claims import format_expected, format_said_of, subject_of
from tools.docs import WRITTEN

CLAIMS_HEAD = """# Claims

Public claims about TensorFlow's speed, memory and results, as files in `workloads/claims/`, each with the comparison
that tests it. `tfcompare reproduce` tests all of them, and `tfcompare reproduce predict-after-compile` tests one of
them. `--suite studies` tests those of the studies that this tool began with, and `--list` lists them.

| verdict | what it means |
|---|---|
| `reproduced` | every statement of the claim was seen here |
| `reproduced, smaller` | the effect was seen, but smaller: the interval excludes the published ratio |
| `not reproduced` | at least one statement was not seen: its effect is reversed, or smaller than required |
| `inconclusive` | neither could be shown, or one of our own controls also shows the effect; the reason is printed |
| `needs a GPU` | it cannot be tested on the device that was measured |

How much of an effect has to be seen follows from one rule and is not set claim by claim, so that none can be tuned
until it passes. If the source gives a ratio for this workload (`published`), at least half of it on the log scale
has to be seen (its square root), because machines differ: for a published 10x, this is 3.16x. If the source gives only
a direction, more than 5 % has to be seen. `same` means within 5 %, and `within 1.25x` where the source says `about` or
measured once. A ratio is seen when its interval leaves out 1 and its estimate is at least that large: the interval
shows that there is an effect, and the printed interval also shows its size. A ratio that is larger than
the published one is `reproduced` as well; the line shows both.

Two arms are the same only when the whole interval lies inside the bounds, and not the same when all of it lies outside.
This asks for more than the rule for a difference, and it has to: an interval that leaves out 1 rules out that nothing
happens, whatever its width, while an interval that reaches over a bound does not rule out a difference. By its estimate
alone, a measurement that is too noisy to tell anything would confirm that two arms are the same.

`published` is only for a ratio whose workload, versions and kind of device are those of the source; the device may
differ if it does not affect the result, and a measurement may repeat the same work less often. Otherwise the ratio is
in the statement only, with the reason why it is not tested, and the claim is tested for its direction. The share that a
function takes in a profile may come from another net of the same size; if so, the statement mentions it.

A control must not show the effect (`not slower` and the like): its whole interval has to stay below 1.25x, unless the
source gives a reason for another bound. Some controls are ours: the source does not have them. If all else holds and
such a control shows the effect as well, the claim is `inconclusive`, because the effect may have another cause.

Words that say how large an effect is are read by one rule: {readings}.
Half of that on the log scale has to be seen as well. It is printed as `read as 10x`, because no source has that figure.

Looks, intervals and rounds are as in every run. `--suite studies` measures for at most 19 minutes unless `--budget`
says otherwise. Claims that would take longer are in `--suite full`.

## Your own claim

Write one file in `workloads/claims/`, and name it after the claim:

```toml
{example}```

A comparison names a `target` and two cases, or a `case` and two targets. A target may have changes, as in any
[target](targets.md): `"2.9 TF_ENABLE_ONEDNN_OPTS=0"`, `"2.15 py=3.10"`, `"2.16 keras=2"`. `expected` is `slower`,
`faster` or `same`; with `metric = "memory"`, `"leak"` or `"traces"` it is `more`, `less` or `same` (leaks and traces
are compared by their difference, at the margin of every run, so such a comparison names no ratio); `first` and `build`
are metrics as well. `not slower`
and its like are for controls: a comparison that must not show the effect; if it does, there may be another cause.
A control has no `published`; `below` is the ratio that it must stay below, 1.25 if it is not given, and `ours = true`
says that the source does not have it. All statements of a claim have to hold. Besides comparisons there are

- `[[sets]]`: two versions over all cases that some selectors name, with `mean_within` for the geometric mean of their
  ratios, or with `more_often`, which is `slower` if more cases have to be slower than faster, or `faster`;
- `[[parts]]`: three cases in a `target`, of which `step` has to have `at_least` this part of the difference between
  `baseline` and `candidate`, on the log scale;
- `[[returns]]`: a `case` and two versions whose results are `expected` to be `equal`, at least
  [within tolerance](metrics.md#do-both-return-the-same), or to be different (`differs`);
- `[[bounds]]`: a figure of one arm, with `at_least` or `at_most`: `traces`, `traces_per_call`, `memory_mb`,
  `import_s`, `build_s`, `first_s`, `time_s`, or `first_over_time`, the first call over a later one;
- `[[shares]]`: a Python `function` that takes a `published` share of an arm's time. After the last round the arm is
  profiled once; half of the share has to be seen, because a profiler slows functions down, each in its own way;
- `[[holds]]`: a `target` and a `case` that checks itself: its step raises an `AssertionError` where the statement is
  false.

`said_of` lists the devices and systems that the source names, and `devices` lists those on which the claim may be
tested. They often differ: many reports come from one GPU, and the overhead that they describe can be seen on a CPU as
well. `elsewhere` names the releases in which the claim is tested if its own release has no code for the GPU. It is
only for claims about one release that have no published figures. A note in the report names the releases that were
used. `source` is a link or a title, then in brackets the passage, or the author of the comment and its date. `quote`
is at most one sentence of it, word for word. `read_as` is for words; the statement has to quote them. Figures and
number words of the title have to be those that are tested; `python -m tools.docs --check` says which are not.
"""

# This file lists the statements of the studies that no claim tests, each with the reason.
UNTESTED = Path(__file__).parent / "claims_untested.md"


def claims_page() -> str:
    all_claims = claims.all_claims(workloads.all_workloads())
    example = (claims.CLAIMS / "integer-lookup-list-slow.toml").read_text()
    readings = ", ".join(f'"{words}" as {ratio:g}x' for words, ratio in claims.READ_AS.items())
    head = CLAIMS_HEAD.replace("{example}", example).replace("{readings}", readings)
    parts = [head.replace("# Claims\n", f"# Claims\n{WRITTEN}\n", 1)]
    titles = {
        "studies": "The claims of the first studies",
        "reported": "The claims of single reports",
        "full": "The claims that take a long time",
    }
    for suite in claims.SUITES:
        of_suite = [claim for claim in all_claims.values() if claim.suite == suite]
        parts += [f"## {titles[suite]}\n", *map(_claim, of_suite)] if of_suite else []
    parts.append(UNTESTED.read_text())
    return "\n".join(parts).rstrip() + "\n"


def _claim(claim: Claim) -> str:
    facts = [f"Source: {_link(claim.source)}", format_said_of(claim), f"tested on: {' and '.join(claim.devices)}"]
    if claim.withdrawn:
        facts.append("withdrawn by its own reporter")
    lines = [f"### {claim.name}", "", f"**{_capitalize(claim.title)}.** {' '.join(claim.statement.split())}", ""]
    if claim.quote:
        lines += [f"> {claim.quote}", ""]
    lines += [". ".join(_capitalize(fact) for fact in facts if fact) + ".", ""]
    return "\n".join([*lines, *_checks(claim)]) + "\n"


def _checks(claim: Claim) -> Iterator[str]:
    """Yield a table of what is measured, what has to be seen, and what was found in the last committed run."""
    found = all_found().get(claim.name)
    seen = {(check.subject, check.expected): check for check in found.checks} if found else {}
    yield "| what is measured | expected | found |"
    yield "|---|---|---|"
    for statement in claim.statements:
        subject, expected = subject_of(statement), format_expected(statement)
        check = seen.get((subject, expected))
        result = ": ".join(filter(None, (check.answer, check.seen))) if check else "not measured yet"
        yield f"| {' | '.join(map(_cell, (f'`{subject}`', expected, result)))} |"
    if found and seen:
        yield ""
        yield f"Found: {found}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _link(source: str) -> str:
    """Return a source with its address, if it starts with one, as a link."""
    address, space, passage = source.partition(" ")
    return f"<{address}>{space}{passage}" if address.startswith("http") else source


def _capitalize(text: str) -> str:
    """Return a sentence with a capital, unless it begins with a name from Python, such as tf.function."""
    word = text.partition(" ")[0]
    return text if re.search(r"[._=]", word) else text[:1].upper() + text[1:]

"""A claim file is read strictly: what it says becomes pairs of arms, and a slip is told with file and key."""

import math
import re
from pathlib import Path

import pytest

from orchestrator.catalog import claims
from orchestrator.catalog.workloads import all_workloads
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Claim
from tests.support.builders import workload

KNOWN = {"power": workload(params={"style": ("eager", "function")})}
HEAD = (
    'title = "t"\nsource = "s"\nsuite = "studies"\nstatement = "Orders of\\nmagnitude."\nsaid_of = ["a GTX 1070"]\n'
    'devices = ["cpu", "gpu"]\n'
)
INSIDE = 'target = "2.0"\nbaseline = "power[style=eager]"\ncandidate = "power[style=function]"\n'
VERSIONS = 'baseline = "1.14"\ncandidate = "2.0"\n'
ACROSS = 'case = "power[style=eager]"\nbaseline = "1.14"\ncandidate = "2.0"\n'


@pytest.fixture
def read(tmp_path: Path):
    def from_text(text: str) -> Claim:
        path = tmp_path / "a-claim.toml"
        path.write_text(text)
        return claims.read_claim(path, KNOWN)

    return from_text


def test_a_comparison_inside_a_version_is_a_pair_of_cases(read):
    [expectation] = read(f'{HEAD}[[comparisons]]\n{INSIDE}expected = "faster"\npublished = 4.0\n').expectations
    assert expectation.pair.arms == (("power[style=eager]", "2.0.0"), ("power[style=function]", "2.0.0"))
    assert (expectation.effect, expectation.published) == ("faster", 4.0)


def test_a_claim_about_any_release_may_be_tested_elsewhere(read):
    found = read(f'{HEAD}elsewhere = ["2.18"]\n[[comparisons]]\n{INSIDE}expected = "faster"\n')
    assert found.targets == ("2.0.0",)


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (f'[[comparisons]]\n{ACROSS}expected = "faster"\n', "claims about one release"),
        (f'[[returns]]\n{ACROSS}expected = "equal"\n', "claims about one release"),
        (f'[[comparisons]]\n{INSIDE}expected = "faster"\n[[comparisons]]\n{INSIDE.replace("2.0", "2.1")}'
         'expected = "faster"\n', "claims about one release"),
        (f'[[comparisons]]\n{INSIDE}expected = "faster"\npublished = 4.0\n', "not for published figures"),
    ],
)  # fmt: skip
def test_a_claim_about_some_releases_may_not(read, tests: str, words: str):
    with pytest.raises(UsageError, match=f"a-claim.toml:7: elsewhere: .*{words}"):
        read(f'{HEAD}elsewhere = ["2.18"]\n{tests}')


@pytest.mark.parametrize(
    "names", ['"2.18 --output=/etc"', '"banana"', '"../../etc/passwd"', '"2.18", "2.18"', f'"{"2" * 5000}"']
)
def test_what_is_no_release_stands_in_for_none(read, names: str):
    with pytest.raises(UsageError, match=r"a-claim\.toml:7: elsewhere: (unknown )?version"):
        read(f'{HEAD}elsewhere = [{names}]\n[[comparisons]]\n{INSIDE}expected = "faster"\n')


def test_a_comparison_across_versions_is_a_pair_of_versions(read):
    found = read(f'{HEAD}[[comparisons]]\n{ACROSS}expected = "more"\nmetric = "traces"\n')
    [expectation] = found.expectations
    assert expectation.pair.arms == (("power[style=eager]", "1.14.0"), ("power[style=eager]", "2.0.0"))
    assert expectation.pair.metric == "traces"
    assert found.targets == ("1.14.0", "2.0.0")


def test_a_version_of_a_claim_may_have_changes(read):
    changed = '"2.13 TF_ENABLE_ONEDNN_OPTS=0"'
    found = read(
        f'{HEAD}[[comparisons]]\ncase = "power[style=eager]"\nbaseline = {changed}\ncandidate = "2.13"\n'
        f'expected = "slower"\n[[holds]]\ntarget = {changed}\ncase = "power[style=eager]"\n'
    )
    assert found.targets == ("2.13.0+TF_ENABLE_ONEDNN_OPTS=0", "2.13.0")
    assert found.definitions == ("2.13.0 TF_ENABLE_ONEDNN_OPTS=0",)


def test_what_a_case_returns_in_two_versions_is_expected_to_be_equal_or_not(read):
    found = read(f'{HEAD}[[returns]]\n{ACROSS}expected = "differs"\n')
    [returns] = found.returns
    assert (returns.case.label, returns.baseline, returns.candidate) == ("power[style=eager]", "1.14.0", "2.0.0")
    assert (returns.expected, returns.pairs, found.pairs) == ("differs", (), ())
    assert found.arms == (("power[style=eager]", "1.14.0"), ("power[style=eager]", "2.0.0"))


def test_half_of_a_published_effect_has_to_be_seen(read):
    def margin(line: str) -> float:
        return read(f"{HEAD}[[comparisons]]\n{INSIDE}{line}").expectations[0].pair.margin

    assert 1 + margin('expected = "slower"\npublished = 10.0') == pytest.approx(math.sqrt(10))
    assert margin('expected = "slower"') == pytest.approx(0.05)
    assert margin('expected = "slower"\npublished = 1.01') == pytest.approx(0.05)
    assert margin('expected = "same"') == pytest.approx(0.05)
    assert margin('expected = "same"\nwithin = 1.25') == pytest.approx(0.25)


def test_words_are_read_by_one_rule_and_never_count_as_published(read):
    [expectation] = read(f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nread_as = 10.0').expectations
    assert (expectation.published, expectation.read_as) == (None, 10.0)
    assert 1 + expectation.pair.margin == pytest.approx(math.sqrt(10))
    assert all(ratio > 1 for ratio in claims.READ_AS.values())
    assert all(words == words.lower() for words in claims.READ_AS)


def test_what_a_source_speaks_of_is_apart_from_where_it_is_tested(read):
    found = read(f'{HEAD}[[holds]]\ntarget = "2.13"\ncase = "power[style=eager]"\n')
    assert (found.said_of, found.devices) == (("a GTX 1070",), ("cpu", "gpu"))


def test_a_case_may_check_itself(read):
    found = read(f'{HEAD}[[holds]]\ntarget = "2.13"\ncase = "power[style=eager]"\n')
    assert found.arms == (("power[style=eager]", "2.13.0"),)
    assert found.expectations == ()


def test_a_set_is_a_pair_of_versions_for_each_case_that_its_selectors_name(read):
    found = read(f'{HEAD}[[sets]]\ncases = ["power", "power[style=eager]"]\n{VERSIONS}mean_within = 1.25\n')
    [together] = found.sets
    assert [pair.case.label for pair in together.pairs] == ["power[style=eager]", "power[style=function]"]
    assert (together.mean_within, together.more_often) == (1.25, None)
    assert found.pairs == together.pairs
    assert len(found.arms) == 4


def test_bounds_and_shares_are_of_one_arm(read):
    arm = 'target = "2.0"\ncase = "power[style=eager]"\n'
    found = read(
        f'{HEAD}[[bounds]]\n{arm}metric = "traces_per_call"\nat_least = 0.9\n'
        f'[[shares]]\n{arm}function = "matmul"\npublished = 0.81\n'
    )
    assert found.arms == (("power[style=eager]", "2.0.0"),)
    assert (found.bounds[0].metric, found.bounds[0].at_least, found.bounds[0].at_most) == ("traces_per_call", 0.9, None)
    assert (found.shares[0].function, found.shares[0].published) == ("matmul", 0.81)
    assert found.pairs == ()


@pytest.mark.parametrize(("line", "below"), [("", 1.25), ("below = 1.1\n", 1.1)])
def test_a_control_has_a_bound_and_no_published_ratio(read, line: str, below: float):
    [expectation] = read(f'{HEAD}[[comparisons]]\n{INSIDE}expected = "not slower"\n{line}').expectations
    assert expectation.is_control
    assert 1 + expectation.pair.margin == pytest.approx(below)
    assert (expectation.published, expectation.ours) == (None, False)


def test_a_control_may_be_ours(read):
    [expectation] = read(f'{HEAD}[[comparisons]]\n{INSIDE}expected = "not slower"\nours = true\n').expectations
    assert expectation.ours


def test_a_part_is_a_step_on_the_way_between_two_cases(read):
    part = 'target = "2.0"\nbaseline = "power[style=eager]"\nstep = "power[style=function]"\n'
    found = read(f'{HEAD}[[parts]]\n{part}candidate = "power[style=function]"\nat_least = 0.5\n')
    [statement] = found.parts
    assert [pair.candidate.label for pair in statement.pairs] == ["power[style=function]"] * 2
    assert statement.at_least == 0.5
    assert found.arms == (("power[style=eager]", "2.0.0"), ("power[style=function]", "2.0.0"))


def test_the_headline_comes_first(read):
    holds = '[[holds]]\ntarget = "2.13"\ncase = "power[style=eager]"\n'
    sets = f'[[sets]]\ncases = ["power"]\n{VERSIONS}more_often = "slower"\n'
    found = read(f'{HEAD}{holds}[[comparisons]]\n{INSIDE}expected = "faster"\n{sets}')
    assert [type(statement).__name__ for statement in found.statements] == ["CaseSet", "Expectation", "Holds"]


def test_a_claim_names_every_case_once(read):
    holds = '[[holds]]\ntarget = "2.13"\ncase = "power[style=eager]"\n'
    found = read(f'{HEAD}[[comparisons]]\n{INSIDE}expected = "faster"\n{holds}')
    assert [case.label for case in found.cases] == ["power[style=eager]", "power[style=function]"]


BAD = {
    "no TOML": ("title", "not TOML"),
    "nothing that tests it": (HEAD, "[[shares]] or [[holds]] that test it"),
    "a set without a rule": (f'{HEAD}[[sets]]\ncases = ["power"]\n{VERSIONS}', "either `mean_within` or `more_often`"),
    "a set of nothing": (f"{HEAD}[[sets]]\ncases = []\n{VERSIONS}mean_within = 1.2", "sets.0.cases"),
    "a bound without a limit": (
        f'{HEAD}[[bounds]]\ntarget = "2.0"\ncase = "power[style=eager]"\nmetric = "traces"\n',
        "either `at_least` or `at_most`",
    ),
    "a bound of a metric of pairs": (
        f'{HEAD}[[bounds]]\ntarget = "2.0"\ncase = "power[style=eager]"\nmetric = "time"\nat_most = 1.0\n',
        "bounds.0.metric",
    ),
    "a share above one": (
        f'{HEAD}[[shares]]\ntarget = "2.0"\ncase = "power[style=eager]"\nfunction = "f"\npublished = 81.0\n',
        "shares.0.published",
    ),
    "an unknown key": (HEAD + "titel = 1\n", "titel: Extra inputs"),
    "a key too few": ('title = "t"\n', "source: Field required"),
    "an unknown effect": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "quicker"',
        "comparisons.0.expected: Input should be",
    ),
    "a ratio below one": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\npublished = 0.5',
        "comparisons.0.published",
    ),
    "an infinite ratio": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\npublished = inf',
        "comparisons.0.published",
    ),
    "both kinds at once": (
        f'{HEAD}[[comparisons]]\n{INSIDE}case = "power"\nexpected = "slower"',
        "a comparison has `case`",
    ),
    "neither kind": (
        f'{HEAD}[[comparisons]]\nbaseline = "a"\ncandidate = "b"\nexpected = "slower"',
        "a comparison has `case`",
    ),
    "more of a time": (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "more"', "does not go with time"),
    "slower memory": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nmetric = "memory"',
        "does not go with memory",
    ),
    "the same by a figure": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "same"\npublished = 2.0',
        "no published ratio",
    ),
    "a published ratio of a control": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "not slower"\npublished = 9.0',
        "a control has no `published`: `below` is the ratio that it must stay below",
    ),
    "words for a control": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "not slower"\nread_as = 10.0',
        "a control has no `read_as`",
    ),
    "a bound without a control": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nbelow = 1.25',
        "`below` is for a control",
    ),
    "ours without a control": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "same"\nours = true',
        "`ours` is for a control",
    ),
    "a part of everything": (
        f'{HEAD}[[parts]]\ntarget = "2.0"\nbaseline = "a"\nstep = "b"\ncandidate = "c"\nat_least = 1.0\n',
        "parts.0.at_least",
    ),
    "the same by words": (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "same"\nread_as = 10.0', "no published ratio"),
    "a figure and words": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\npublished = 10.0\nread_as = 10.0',
        "`published` or `read_as`, not both",
    ),
    "a reading against the rule": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nread_as = 5.0',
        "the statement has no words that mean this ratio",
    ),
    "a reading of words that are not there": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nread_as = 2.0',
        "the statement has no words that mean this ratio",
    ),
    "a reading below one": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nread_as = 0.5',
        "comparisons.0.read_as",
    ),
    "an unknown key of a comparison": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nread = 10.0',
        "comparisons.0.read: Extra inputs",
    ),
    "said of an empty text": (HEAD.replace('"a GTX 1070"', '""'), "said_of.0: String should have at least 1"),
    "slower within": (
        f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nwithin = 1.2',
        "goes with expected = 'same'",
    ),
    "an unknown version": (f'{HEAD}[[holds]]\ntarget = "2.99"\ncase = "power[style=eager]"', "unknown version '2.99'"),
    "a case left open": (f'{HEAD}[[holds]]\ntarget = "2.0"\ncase = "power"', "names 2 cases"),
    "an unknown workload": (f'{HEAD}[[holds]]\ntarget = "2.0"\ncase = "powr[style=eager]"', "powr"),
    "nothing that it is said of": (HEAD.replace('said_of = ["a GTX 1070"]\n', ""), "said_of: Field required"),
    "an empty list of what it is said of": (
        HEAD.replace('["a GTX 1070"]', "[]"),
        "said_of: Tuple should have at least 1 item",
    ),
    "a wheel": (
        f'{HEAD}[[holds]]\ntarget = "wheel=mine.whl as mine"\ncase = "power[style=eager]"',
        "a claim is about releases, perhaps with changes",
    ),
    "a change that is none": (
        f'{HEAD}[[holds]]\ntarget = "2.0 colour=red"\ncase = "power[style=eager]"',
        "unknown change 'colour'",
    ),
    "another word for equal": (f'{HEAD}[[returns]]\n{ACROSS}expected = "same"', "returns.0.expected"),
    "no device": (HEAD.replace('["cpu", "gpu"]', "[]"), "devices: Tuple should have at least 1 item"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_bad_file_is_told_with_its_path(read, text: str, words: str):
    with pytest.raises(UsageError, match=r"a-claim\.toml:(\d+:)? ") as told:
        read(text)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEAD + "titel = 1\n", 7),
        (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "quicker"', 11),
        (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "faster"\n\n[[comparisons]]\n{INSIDE}', 13),
        (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "more"', 7),
        (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "not slower"\npublished = 9.0', 12),
        (f'{HEAD}[[comparisons]]\n{INSIDE}expected = "slower"\nbelow = 1.2', 12),
    ],
)
def test_a_mistake_is_told_with_its_line(read, text: str, line: int):
    with pytest.raises(UsageError, match=rf"a-claim\.toml:{line}: "):
        read(text)


BUILTIN = claims.all_claims(all_workloads())


def test_every_claim_that_comes_with_tfcompare_can_be_read():
    assert len([claim for claim in BUILTIN.values() if claim.suite == "studies"]) >= 20
    assert len([claim for claim in BUILTIN.values() if claim.suite == "reported"]) >= 15
    assert any(claim.withdrawn for claim in BUILTIN.values())
    for claim in BUILTIN.values():
        assert claim.title
        assert not claim.title.endswith(".")
        assert claim.statement.endswith(".")
        assert claim.said_of
        assert claim.source.endswith(")"), "a source names its passage, or the comment and its date"
        assert not re.search(r"[.?!][\"')]* +[A-Z]", claim.quote), f"{claim.name}: a quote is one sentence"


def test_nearly_every_claim_quotes_its_source():
    """One comment could not be read word for word."""
    assert [claim.name for claim in BUILTIN.values() if not claim.quote] == ["keras-3-function-slow"]


def test_a_published_ratio_is_tested_on_the_kind_of_device_that_its_source_names():
    published = {claim.name for claim in BUILTIN.values() if any(item.published for item in claim.expectations)}
    either = {name for name in published if set(BUILTIN[name].devices) == {"cpu", "gpu"}}
    # The work of the first and the last is done by the CPU in any case, and the report of the other speaks of both.
    assert either == {"dataset-loop-slow", "depthwise-slow", "integer-lookup-list-slow"}


def test_no_two_claims_test_the_same_on_one_device():
    """A control may serve several claims: it is there for what it stands beside."""
    owners: dict[object, str] = {}
    for claim in BUILTIN.values():
        effects = [item.pair for item in claim.expectations if not item.effect.startswith("not ")]
        bounds = [(bound.arm, bound.metric) for bound in claim.bounds if bound.at_least is not None]
        sets = [tuple(pair for pair in item.pairs) for item in claim.sets]
        for tested in (*effects, *bounds, *sets, *claim.parts, *claim.shares, *claim.holds):
            for device in claim.devices:
                owner = owners.setdefault((tested, device), claim.name)
                assert owner == claim.name, f"{claim.name} and {owner} both test {tested} on a {device}"


def test_claims_are_chosen_by_name_and_suite():
    assert claims.choose_claims((), None, BUILTIN) == tuple(BUILTIN.values())
    assert {claim.suite for claim in claims.choose_claims((), "studies", BUILTIN)} == {"studies"}
    assert [one.name for one in claims.choose_claims(["xla-on-gpu", "xla-on-gpu"], None, BUILTIN)] == ["xla-on-gpu"]
    with pytest.raises(UsageError, match=r"did you mean predict-after-compile"):
        claims.choose_claims(["predict-after-compil"], None, BUILTIN)
    with pytest.raises(UsageError, match="studies, reported, full"):
        claims.choose_claims((), "quick", BUILTIN)
    with pytest.raises(NothingSelected):
        claims.choose_claims(["xla-on-gpu"], "reported", BUILTIN)

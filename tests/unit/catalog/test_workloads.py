"""Workload files are read as text and never run; whatever is wrong with one is said by its name."""

import os
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator import catalog
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.selectors import expand, parse_selector
from orchestrator.errors import UsageError

BUILD = "def build(tf, params):\n    return lambda: None\n"
SELECTORS = [
    pytest.param(selector, id=f"{suite.name}: {selector}")
    for suite in suites.all_suites().values()
    for selector in (*suite.cases, *suite.gpu_cases)
]


def written(folder: Path, source: str, name: str = "mine") -> Path:
    path = folder / f"{name}.py"
    path.write_text(dedent(source))
    return path


def test_a_file_says_what_it_does_and_what_it_can_vary(tmp_path: Path):
    source = '''
        """Does a thing.

        And more about it.
        """
        raise SystemExit("read, not run")
        PARAMS = {"size": ("small", "large"), "mode": ["eager", "graph"]}
        COMPARISONS = {"mode": "eager"}
        EXCLUDE = ({"size": "large", "mode": "graph"},)
        def build(tf, params): ...
    '''
    found = suites.read_workload(written(tmp_path, source), builtin=False)
    assert found.name == "mine"
    assert found.summary == "Does a thing."
    assert found.params == {"size": ("small", "large"), "mode": ("eager", "graph")}
    assert found.comparisons == {"mode": "eager"}
    assert found.exclude == ({"size": "large", "mode": "graph"},)
    assert not found.builtin


def test_a_file_needs_nothing_but_build(tmp_path: Path):
    found = suites.read_workload(written(tmp_path, BUILD), builtin=False)
    assert (found.summary, found.params, found.comparisons, found.exclude) == ("", {}, {}, ())


def test_constants_may_carry_annotations(tmp_path: Path):
    source = "PARAMS: dict = {'n': ('a', 'b')}\nCOMPARISONS: dict = {'n': 'a'}\n" + BUILD
    found = suites.read_workload(written(tmp_path, source), builtin=False)
    assert (found.params, found.comparisons) == ({"n": ("a", "b")}, {"n": "a"})


def test_numbers_become_the_strings_that_a_case_is_selected_by(tmp_path: Path):
    source = "PARAMS = {'n': (64, 0.5)}\nCOMPARISONS = {'n': 64}\nEXCLUDE = ({'n': 0.5},)\n" + BUILD
    found = suites.read_workload(written(tmp_path, source), builtin=False)
    assert (found.params, found.comparisons, found.exclude) == ({"n": ("64", "0.5")}, {"n": "64"}, ({"n": "0.5"},))


def test_a_file_that_no_selection_could_name_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"my model\.py: the name of a workload has letters.*rename the file"):
        suites.read_workload(written(tmp_path, BUILD, "my model"), builtin=False)


def test_syntax_that_a_python_does_not_know_is_named_with_its_line(tmp_path: Path):
    path = written(tmp_path, BUILD + "def more(x):\n    if (y := x): return y\n")
    workload = suites.read_workload(path, builtin=False)
    suites.check_syntaxes(workload, catalog.resolve_versions(["2.12"], 1))
    with pytest.raises(UsageError, match=r"mine\.py, line 4: Python 3\.[67] cannot read this"):
        suites.check_syntaxes(workload, catalog.resolve_versions(["1.14"], 1))


BAD_FILES = {
    "no Python": ("def build(:", "cannot be read as Python: invalid syntax"),
    "Python 2": ("print 'x'\n" + BUILD, "cannot be read as Python"),
    "no build": ("PARAMS = {}", r"needs a function build\(tf, params\)"),
    "build is a variable": ("build = None", r"needs a function build\(tf, params\)"),
    "computed": ("PARAMS = {'n': tuple(map(str, range(3)))}\n" + BUILD, "PARAMS must be a literal"),
    "computed in part": ("X = ('a',)\nPARAMS = {'n': X}\n" + BUILD, "PARAMS must be a literal"),
    "no dict": ("PARAMS = ('a', 'b')\n" + BUILD, "PARAMS must be a dict"),
    "a string for a tuple": ("PARAMS = {'n': 'small'}\n" + BUILD, r"PARAMS\['n'\] must be a tuple of strings"),
    "a value twice": (
        "PARAMS = {'n': (1, '1', 2)}\n" + BUILD,
        r"PARAMS\['n'\] has more than one .* written '1'; leave",
    ),
    "no values": ("PARAMS = {'n': ()}\n" + BUILD, r"PARAMS\['n'\] must be a tuple of strings"),
    "tuples": ("PARAMS = {'n': ((1,), 2)}\n" + BUILD, r"PARAMS\['n'\] must be a tuple of strings or numbers"),
    "one argument": ("def build(tf):\n    return len\n", r"line 1: build takes two arguments, build\(tf, params\)"),
    "three arguments": ("def build(tf, params, more):\n    return len\n", "build takes two arguments"),
    "a keyword that is needed": ("def build(tf, params, *, more):\n    return len\n", "build takes two arguments"),
    "a foreign comparison": (
        "COMPARISONS = {'n': 'a'}\n" + BUILD,
        "n=a is in COMPARISONS or EXCLUDE, but not in PARAMS",
    ),
    "a foreign exclusion": (
        "PARAMS = {'n': ('a',)}\nEXCLUDE = ({'n': 'b'},)\n" + BUILD,
        "n=b is in COMPARISONS or EXCLUDE, but not in PARAMS",
    ),
    "comparisons that are no dict": ("COMPARISONS = ('n',)\n" + BUILD, "COMPARISONS must be a dict"),
    "one exclusion without its tuple": (
        "PARAMS = {'n': ('a',)}\nEXCLUDE = {'n': 'a'}\n" + BUILD,
        "EXCLUDE must be a tuple of dicts",
    ),
}


@pytest.mark.parametrize(("source", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_by_its_path(tmp_path: Path, source: str, words: str):
    path = written(tmp_path, source)
    with pytest.raises(UsageError, match=words) as refusal:
        suites.read_workload(path, builtin=False)
    assert str(refusal.value).startswith(f"{path}: ")


def test_a_file_that_is_no_text_is_refused_by_its_path(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"mine\.py: cannot be read as Python"):
        suites.read_workload(path, builtin=False)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("folder", "Is a directory"),
        ("link", "No such file or directory"),
        ("pipe", "Not a regular file"),
        ("large", "it has more than 1 MiB"),
    ],
)
def test_what_is_named_like_a_workload_and_is_no_file_is_refused(tmp_path: Path, kind: str, why: str):
    path = tmp_path / "mine.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.write_text(BUILD + "#" * 2**20)
    else:
        path.symlink_to("nowhere")
    with pytest.raises(UsageError, match=rf"mine\.py: cannot be read: {why}; remove it"):
        suites.all_workloads(tmp_path)


def test_a_workload_that_is_nested_too_deep_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"mine\.py: cannot be read as Python: "):
        suites.read_workload(written(tmp_path, "PARAMS = " + "-" * 200_000 + "1"), builtin=False)


def test_a_workload_says_what_it_requires_and_where_its_data_are(tmp_path: Path):
    (tmp_path / "near").mkdir()
    path = tmp_path / "own.py"
    path.write_text(
        f"REQUIREMENTS = ('pandas', 'pillow>=9')\nDATA = {{'far': {str(tmp_path)!r}, 'near': 'near'}}\n"
        "def build(tf, params): return len\n"
    )
    workload = suites.read_workload(path, builtin=False)
    assert workload.requirements == ("pandas", "pillow>=9")
    assert workload.data == {"far": tmp_path, "near": tmp_path / "near"}
    allowed = {"tfcompare_data/own/far": tmp_path}
    assert suites.check_data(workload, tmp_path, allowed) == workload
    (tmp_path / "near").rmdir()
    with pytest.raises(UsageError, match=r"own.py: DATA\['near'\]: .*/near does not exist"):
        suites.check_data(workload, tmp_path, allowed)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("REQUIREMENTS = 'pandas'", "REQUIREMENTS must be a tuple of strings"),
        ("REQUIREMENTS = ('pan das',)", "'pan das' is no requirement"),
        ("REQUIREMENTS = ('a @ https://example.org/a.whl',)", "name a package of the index, not an address"),
        ("REQUIREMENTS = [1]", "REQUIREMENTS must be a tuple of strings"),
        ("DATA = ['/data']", "DATA must be a dict of names and folders"),
        ("DATA = {'a': 1}", "DATA must be a dict of names and folders"),
        ("DATA = {'a/b': '/data'}", "the name 'a/b' has letters, digits"),
        ("DATA = {'..': '/data'}", "the name '..' has letters, digits"),
        ("DATA = {'': '/data'}", "the name '' has letters, digits"),
        ("DATA = {'.a': '/data'}", "no '.' at its start"),
        ("DATA = {'a': '/da\\nta'}", "has characters that cannot be printed"),
    ],
)
def test_requirements_and_data_that_are_none_are_refused(tmp_path: Path, source: str, words: str):
    (tmp_path / "own.py").write_text(f"{source}\ndef build(tf, params): return len\n")
    with pytest.raises(UsageError, match=words):
        suites.read_workload(tmp_path / "own.py", builtin=False)


def test_a_folder_of_ones_own_adds_to_the_built_in_workloads(tmp_path: Path):
    written(tmp_path, BUILD)
    written(tmp_path, "raise SystemExit", name="_helper")
    found = suites.all_workloads(tmp_path)
    assert set(found) == {"mine", *suites.all_workloads()}
    assert found["power"].builtin
    assert not found["mine"].builtin


def test_a_folder_that_is_missing_empty_or_takes_a_built_in_name_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="no such folder"):
        suites.all_workloads(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="holds no workload file"):
        suites.all_workloads(tmp_path)
    written(tmp_path, BUILD, name="power")
    with pytest.raises(UsageError, match="'power' is a built-in workload's name; rename the file"):
        suites.all_workloads(tmp_path)


def test_every_built_in_workload_says_what_it_does():
    assert all(workload.summary for workload in suites.all_workloads().values())


def test_the_suites_are_those_of_the_design():
    assert set(suites.all_suites()) == {"smoke", "quick", "studies", "models", "backends", "atlas", "full"}


def test_a_suite_may_have_larger_cases_on_a_gpu():
    models, quick = suites.suite("models"), suites.suite("quick")
    assert models.on("cpu") == models
    assert [case.replace("=gpu", "=cpu") for case in models.on("gpu").cases] == list(models.cases)
    assert quick.on("gpu") == quick


@pytest.mark.parametrize("selector", SELECTORS)
def test_every_selector_of_every_suite_means_at_least_one_case(selector: str):
    workloads = suites.all_workloads()
    parsed = parse_selector(selector, workloads)
    assert expand(parsed, workloads[parsed.workload])


def test_an_unknown_suite_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"unknown suite 'smoek' \(did you mean smoke\?\); there are smoke, quick"):
        suites.suite("smoek")


def test_a_changed_source_has_another_hash_and_leaves_the_others(tmp_path: Path):
    mine, other = written(tmp_path, BUILD), written(tmp_path, BUILD, name="other")
    found = [suites.read_workload(path, builtin=False) for path in (mine, other)]
    before = suites.source_hashes(found)
    mine.write_text("# changed\n" + BUILD)
    after = suites.source_hashes(found)
    assert {name for name in before if before[name] != after[name]} == {"mine"}
    assert set(before) == {"worker", "mine", "other"}


@pytest.mark.parametrize("value", ["64,64", "relu|gelu", "a]", "[a", "a=b", " a", "a ", "a\nb"])
@pytest.mark.parametrize("place", ["value", "name"])
def test_a_parameter_that_could_not_be_selected_is_refused(tmp_path: Path, value: str, place: str):
    params = {"shape": ("1", value)} if place == "value" else {value: ("1",)}
    with pytest.raises(UsageError, match="cannot be selected"):
        suites.read_workload(written(tmp_path, f"PARAMS = {params!r}\n{BUILD}"), builtin=False)


def test_every_case_can_be_selected_by_its_label(tmp_path: Path):
    written(tmp_path, f"PARAMS = {{'shape': ('64x64', '', 'a b', '<µ>'), 'act': ('re-lu', 'x/y:z')}}\n{BUILD}")
    workloads = suites.all_workloads(tmp_path)
    for one in expand(parse_selector("mine", workloads), workloads["mine"]):
        assert expand(parse_selector(one.label, workloads), workloads["mine"]) == [one]

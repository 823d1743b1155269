"""Formats: each file says which it is, and each is read in one place."""

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest

from orchestrator import formats
from orchestrator.formats import FORMATS, Format, NoFormat, OtherFormat
from tests.conftest import ROOT

# The only place that reads a format, and the only one that reads the streams of workers.
READERS = {
    "RUN": "results/run_folder.py",
    "PROFILE": "profiling/stored.py",
    "SEARCH": "bisect/state.py",
    "WHY": "why/state.py",
    "UPGRADE": "upgrade/state.py",
    "MODELS": "saved_models/stored.py",
    "ATLAS": "atlas/figures.py",
    "ATLAS_STATE": "atlas/state.py",
    "POINTS": "history/schema.py",
    "EVENT": "history/store.py",
    "TRUST": "catalog/trust.py",
    "FLEET": "fleet/machines.py",
    "contract": "results/streams.py",
}
FORMAT = Format("run", 3, "start a new run")


def test_what_is_stamped_comes_back():
    stamped = FORMAT.stamp(b'{\n "a": 1\n}')
    assert stamped.startswith(b'{\n "format": "tfcompare.run/3",')
    assert FORMAT.unstamp(stamped).split() == [b"{", b'"a":', b"1", b"}"]


@pytest.mark.parametrize("head", ['{"format":"tfcompare.run/3",', ' \n{ "format" : "tfcompare.run/3" ,'])
def test_blanks_do_not_matter(head: str):
    assert FORMAT.unstamp(f'{head} "a": 1}}'.encode()) == b'{ "a": 1}'


@pytest.mark.parametrize("number", [2, 4, 30])
def test_another_number_is_named_with_what_to_do(number: int):
    with pytest.raises(OtherFormat) as error:
        FORMAT.unstamp(f'{{"format": "tfcompare.run/{number}", "a": 1}}'.encode())
    assert str(error.value) == (
        f"its format is tfcompare.run/{number}, and this tfcompare reads tfcompare.run/3: start a new run"
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "no JSON", '{"a": 1}', '{"a": 1, "format": "tfcompare.run/3"}', '{"format": 3, "a": 1}',
        '{"format": "tfcompare.plan/3", "a": 1}', '{"format": "tfcompare.run/03", "a": 1}',
        '{"format": "tfcompare.run/x", "a": 1}', '{"format": "\xff", "a": 1}', '{"format": "tfcompare.run/3"}',
    ],
)  # fmt: skip
def test_a_file_without_its_mark_is_no_file_of_the_format(text: str):
    with pytest.raises((NoFormat, OtherFormat)):
        FORMAT.unstamp(text.encode("latin-1"))


def test_each_format_has_one_reader_of_one_number():
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "orchestrator").rglob("*.py")):
        for name in find_readers(ast.parse(path.read_text())):
            found[name].append(path.relative_to(ROOT / "orchestrator").as_posix())
    assert found == {name: [place] for name, place in READERS.items()}


def test_all_formats_are_listed_and_have_different_names():
    named = {name: each for name, each in vars(formats).items() if isinstance(each, Format)}
    assert tuple(named.values()) == FORMATS
    assert named.keys() == READERS.keys() - {"contract"}
    assert len({each.name for each in FORMATS}) == len(FORMATS)


def find_readers(tree: ast.Module) -> Iterator[str]:
    """Yield the format of each call that checks its mark, and `contract` where the fingerprint of a stream is read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
            if node.func.attr in ("unstamp", "check") and isinstance(getattr(formats, name, None), Format):
                yield name
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "read_stamped":
            yield ast.unparse(node.args[1])
        if isinstance(node, ast.Compare) and ast.unparse(node) == "fingerprint != contract.FINGERPRINT":
            yield "contract"

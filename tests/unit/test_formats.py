"""Formats: each file says which it is, and each is read in one place."""

import pytest

from orchestrator.formats import FORMATS, Format, NoFormat, OtherFormat

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


def test_names_are_unique():
    assert len({each.name for each in FORMATS}) == len(FORMATS)

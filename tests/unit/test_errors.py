"""Every way of ending has an exit code of its own, and the module's docstring tells them all."""

import re

import pytest

from orchestrator import errors
from orchestrator.errors import TfCompareError

LEAVES = TfCompareError.__subclasses__()


def test_no_two_errors_share_an_exit_code():
    codes = [leaf.exit_code for leaf in LEAVES]
    assert len(set(codes)) == len(codes)


def test_no_error_ends_like_a_success():
    assert 0 not in {leaf.exit_code for leaf in LEAVES}


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_each_is_a_leaf(leaf: type[TfCompareError]):
    assert leaf.__subclasses__() == []


def test_the_docstring_lists_them_with_their_codes():
    told = {name: int(code) for name, code in re.findall(r"[|`]- (\w+) +(\d+) ", errors.__doc__ or "")}
    assert told == {leaf.__name__: leaf.exit_code for leaf in LEAVES}


def test_they_are_the_codes_of_the_design():
    assert sorted(leaf.exit_code for leaf in LEAVES) == [1, 2, 3, 4, 5, 6, 7, 70, 130]

"""The hand-written pydantic Row says what the contract's table says."""

from types import NoneType
from typing import get_args, get_origin

import pytest

from orchestrator import contract
from orchestrator.results import streams
from orchestrator.results.streams import Row

KINDS = {"label": str, "int32": int, "int64": int}
GREATEST = {"int32": 2**31 - 1, "int64": 2**63 - 1}
NUMERIC = [field for field in contract.FIELDS if field.type != "label"]


def options(name: str) -> tuple[object, ...]:
    """The types that Row allows for a field, None among them where it is nullable."""
    annotation = Row.model_fields[name].annotation
    if get_origin(annotation) is None:
        return (annotation,)
    return tuple(get_args(option)[0] if hasattr(option, "__metadata__") else option for option in get_args(annotation))


def test_the_names_and_their_order_are_those_of_the_table():
    assert list(Row.model_fields) == [field.name for field in contract.FIELDS]


@pytest.mark.parametrize("field", contract.FIELDS, ids=lambda field: field.name)
def test_each_field_has_the_kind_and_nullability_of_the_table(field: contract.Field):
    kinds = set(options(field.name)) - {NoneType}
    expected = set(contract.PHASES) if field.name == "phase" else {KINDS[field.type]}
    assert kinds == expected
    assert (NoneType in options(field.name)) is field.nullable


@pytest.mark.parametrize("field", NUMERIC, ids=lambda field: field.name)
def test_each_number_has_bounds_that_its_arrow_type_can_hold(field: contract.Field):
    lowest, highest = streams.find_limits(field.name)
    assert -GREATEST[field.type] <= lowest < highest <= GREATEST[field.type]
    assert lowest >= 0 or field.name == "growth_bytes"


def test_no_field_is_a_float_so_that_nothing_is_ever_nan():
    assert {field.type for field in contract.FIELDS} == KINDS.keys()


def test_what_is_nullable_is_what_stands_once_a_replicate():
    assert tuple(name for name in Row.model_fields if NoneType in options(name)) == contract.REPLICATE_FIELDS

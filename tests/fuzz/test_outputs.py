"""Sketches of results, which a workload can forge: read or refused, and always compared."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.results.sketches import find_distance, read_sketch
from tests.fuzz.damage import TEXTS, damaged_json, damaged_text
from tests.fuzz.memory import bounded_memory
from workloads.sketches import sketch

SAMPLES = [
    sketch(value)
    for value in (
        np.random.RandomState(1).randn(20, 3).astype("float32"),
        {"loss": 0.5, "labels": np.arange(4), "text": "a", "none": None},
        [np.array([np.nan, np.inf]), np.float16(1), 1 + 2j, True],
    )
]


def compares(one: str, other: str) -> None:
    with bounded_memory():
        sketches = [each for each in map(read_sketch, (one, other)) if each]
        for mine in sketches:
            for theirs in sketches:
                assert find_distance(mine, theirs).share >= 0


@given(st.sampled_from(SAMPLES), st.one_of(TEXTS, *map(damaged_text, SAMPLES)))
def test_a_sketch_with_damaged_text(whole: str, damaged: str):
    compares(whole, damaged)


@given(st.sampled_from(SAMPLES), st.one_of([damaged_json(json.loads(sample)) for sample in SAMPLES]))
def test_a_sketch_with_damaged_values(whole: str, damaged: object):
    compares(whole, json.dumps(damaged))

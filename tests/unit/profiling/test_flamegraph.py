"""Stacks as other tools read them; the speedscope format is described beside its schema, file-format-spec.ts."""

import json
import re

import pytest

from orchestrator.model.profile import Frame, Node, Stacks
from orchestrator.profiling.flamegraph import collapse, speedscope
from tests.support.builders import case
from tests.support.profiled import STACKS, arm, profile

LINE = re.compile(r"[^;\n]+(;[^;\n]+)* [1-9]\d*")
# What the published schema requires of a file, of its one sampled profile, and of a frame.
FILE = {"$schema", "shared", "profiles"}
SAMPLED = {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}


@pytest.fixture
def exported() -> dict:
    """As it stands in its file."""
    found: dict = json.loads(json.dumps(speedscope(arm(case("predict", model="tiny"), "2.0.0", profile()), STACKS)))
    return found


def test_a_line_a_stack_outermost_first_and_its_own_nanoseconds_last():
    assert collapse(STACKS).splitlines() == [
        "build.<locals>.<lambda> (predict.py:41);Model.predict (keras/a?b.py:7) 300",
        "build.<locals>.<lambda> (predict.py:41);Model.predict (keras/a?b.py:7);f 200",
        "build.<locals>.<lambda> (predict.py:41);f 100",
    ]


def test_no_name_can_break_a_line_or_a_stack():
    nasty = Stacks(
        calls=1,
        fold_below=0.0,
        frames=(Frame("a\nb.py", 1, "one;two\r\n9"), Frame("", 0, "\x1b[31m")),
        nodes=(Node(-1, 0, 5), Node(0, 1, 6)),
    )
    assert all(LINE.fullmatch(line) for line in collapse(nasty).split("\n")[:-1])
    assert collapse(nasty).count("\n") == 2
    assert collapse(nasty).count(";") == 1


def test_nothing_is_lost_on_the_way():
    assert sum(int(line.rpartition(" ")[2]) for line in collapse(STACKS).splitlines()) == 600


def test_a_speedscope_file_has_all_that_its_schema_requires(exported: dict):
    assert exported["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert exported.keys() >= FILE
    [sampled] = exported["profiles"]
    assert sampled.keys() == SAMPLED
    assert (sampled["type"], sampled["unit"]) == ("sampled", "nanoseconds")
    assert isinstance(sampled["name"], str)
    for frame in exported["shared"]["frames"]:
        assert frame.keys() in ({"name"}, {"name", "file", "line"})
        assert isinstance(frame["name"], str)


def test_its_samples_have_weights_that_fill_it_and_frames_that_exist(exported: dict):
    [sampled] = exported["profiles"]
    assert len(sampled["samples"]) == len(sampled["weights"]) == 3
    assert sampled["startValue"] + sum(sampled["weights"]) == sampled["endValue"]
    frames = exported["shared"]["frames"]
    assert all(0 <= frame < len(frames) for sample in sampled["samples"] for frame in sample)
    assert [frames[frame]["name"] for frame in sampled["samples"][1]] == [
        "build.<locals>.<lambda>",
        "Model.predict",
        "f",
    ]


def test_it_says_what_it_is_of_and_that_a_tracer_was_there(exported: dict):
    assert exported["name"] == "2.0.0 predict[model=tiny]"
    assert exported["profiles"][0]["name"] == "2.0.0 predict[model=tiny]: 5 calls under a tracer"

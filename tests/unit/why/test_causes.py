"""What two targets differ in is found from what is installed, and each cause undoes itself and nothing else."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.targets import parse_target
from orchestrator.why.cause import End
from orchestrator.why.causes import KINDS, find_causes
from orchestrator.why.causes.defaults import DEFAULTS
from orchestrator.why.climb import write_named
from orchestrator.why.ends import name_rest, read_target, write_target
from tests.conftest import ROOT

PACKAGES = {"numpy": "1.26.4", "protobuf": "4.25.3", "keras": "2.15.0", "tensorflow-cpu": "2.15.1", "pip": "24.0"}
NEWER = {"numpy": "2.1.3", "protobuf": "5.29.5", "keras": "3.11.3", "tensorflow-cpu": "2.20.0", "pip": "26.0"}


def end(text: str, python: str = "3.11.7", packages: dict[str, str] | None = None, **more: bool) -> End:
    return End(changed=read_target(text), name=text, python=python, packages=packages or {}, **more)


def undone(old: End, new: End, device: str = "cpu") -> dict[str, str]:
    """The new target with each cause undone, by its title."""
    kinds = find_causes(old, new, device).values()
    return {cause.title: write_target(cause.undo(new.changed)) for causes in kinds for cause in causes}


def test_releases_differ_in_keras_packages_and_defaults_that_changed_in_between():
    old, new = end("2.15.1", packages=PACKAGES), end("2.20.0", packages=NEWER)
    assert undone(old, new) == {
        "XLA's thunk runtime off -> on": "2.20.0 XLA_FLAGS=--xla_cpu_use_thunk_runtime=false",
        "numpy 1.26.4 -> 2.1.3": "2.20.0 numpy==1.26.4",
        "protobuf 4.25.3 -> 5.29.5": "2.20.0 protobuf==4.25.3",
        "Keras 2.15.0 -> 3.11.3": "2.20.0 keras=2",
    }
    assert name_rest(old, new) == "TensorFlow 2.15.1 -> 2.20.0"


def test_a_default_is_a_cause_only_between_the_releases_that_it_changed_between():
    assert undone(end("2.8.4"), end("2.9.3")) == {"oneDNN off -> on": "2.9.3 TF_ENABLE_ONEDNN_OPTS=0"}
    assert undone(end("2.9.3"), end("2.10.1")) == {}
    assert undone(end("2.9.3"), end("2.8.4")) == {}
    assert undone(end("2.8.4 TF_ENABLE_ONEDNN_OPTS=1"), end("2.9.3 TF_ENABLE_ONEDNN_OPTS=1")) == {}
    thunks = "2.20.0 XLA_FLAGS=--xla_cpu_use_thunk_runtime=false"
    assert undone(end("2.17.1"), end("2.20.0")) == {"XLA's thunk runtime off -> on": thunks}
    assert undone(end("2.17.1"), end("2.21.0")) == {}, "2.21 has no other runtime"
    assert undone(end("2.3.4"), end("2.4.4"), "gpu") == {"TF32 off -> on": "2.4.4 NVIDIA_TF32_OVERRIDE=0"}
    assert {each.device for each in DEFAULTS} == {"cpu", "gpu"}


def test_two_releases_of_keras_3_are_told_apart_by_a_pin():
    old = end("2.20.0 keras==3.5.0", packages={"keras": "3.5.0"})
    new = end("2.20.0 keras==3.8.0", packages={"keras": "3.8.0"})
    assert undone(old, new) == {"Keras 3.5.0 -> 3.8.0": "2.20.0 keras==3.5.0"}
    assert name_rest(old, new) == ""


def test_keras_2_as_a_package_is_undone_by_leaving_it_out():
    old = end("2.20.0", packages={"keras": "3.11.3"})
    new = end("2.20.0 keras=2", packages={"keras": "3.11.3", "tf-keras": "2.20.1"})
    assert undone(old, new) == {"Keras 3.11.3 -> 2.20.1": "2.20.0 keras==3.11.3"}


def test_keras_of_old_releases_is_a_part_of_them():
    assert undone(end("2.13.1", packages={"keras": "2.13.1"}), end("2.15.1", packages={"keras": "2.15.0"})) == {}


@pytest.mark.parametrize(
    ("old", "new", "title", "text"),
    [
        ("2.15.1", "2.15.1 OMP_NUM_THREADS=1", "OMP_NUM_THREADS none -> 1", "2.15.1"),
        ("2.15.1 OMP_NUM_THREADS=2", "2.15.1", "OMP_NUM_THREADS 2 -> none", "2.15.1 OMP_NUM_THREADS=2"),
        ("2.15.1 A=1", "2.15.1 A=2 B=1", "A 1 -> 2", "2.15.1 B=1 A=1"),
    ],
)
def test_a_variable_is_set_back_or_removed(old: str, new: str, title: str, text: str):
    assert undone(end(old), end(new))[title] == text


def test_another_python_is_undone_by_naming_it():
    assert undone(end("2.15.1", python="3.9.18"), end("2.15.1 py=3.11")) == {"Python 3.9 -> 3.11": "2.15.1 py=3.9"}
    assert undone(end("2.15.1", python="3.11.2"), end("2.15.1", python="3.11.7")) == {}


def test_a_package_that_only_one_target_pins_is_left_out_again():
    new = end("2.15.1 scipy==1.12.0", packages={"scipy": "1.12.0", "numpy": "1.26.4"})
    assert undone(end("2.15.1", packages={"numpy": "1.26.4"}), new) == {"scipy none -> 1.12.0": "2.15.1"}


def test_the_users_code_is_set_back_to_the_revision_of_the_old_target():
    commit = "a" * 40
    old, new = end(f"2.15.1 @main={commit}"), end("2.15.1")
    assert undone(old, new) == {"your code main -> as it is": f"2.15.1 @main={commit}"}


def test_an_image_is_used_as_it_is_so_only_variables_are_undone():
    old = end("2.15.1", packages=PACKAGES)
    new = end("image=mine A=1 as mine", python="3.12.1", packages=NEWER, is_image=True)
    assert undone(old, new) == {"A none -> 1": "image=mine as mine"}
    assert name_rest(old, new) == "TensorFlow 2.15.1 -> mine"


def test_equal_ends_have_no_cause():
    assert find_causes(end("2.15.1", packages=PACKAGES), end("2.15.1", packages=PACKAGES), "cpu") == {}
    assert name_rest(end("2.15.1"), end("2.15.1")) == ""


def test_each_kind_has_a_file_and_a_test_of_its_name():
    folder = ROOT / "orchestrator" / "why" / "causes"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {kind.find.__module__.rpartition(".")[2] for kind in KINDS.values()}
    text = Path(__file__).read_text()
    assert all(re.search(rf"{name.rstrip('s')}", text, re.IGNORECASE) for name in files)


def test_what_is_undone_can_be_read_again():
    """A target whose changes are too long for a name gets a short one."""
    for text in ("2.20.0 keras=2", "2.20.0 XLA_FLAGS=--xla_cpu_use_thunk_runtime=false numpy==1.26.4 as rung-1.2"):
        assert set(write_target(parse_target(text)).split()) == set(text.split())
    long = replace(
        parse_target("2.20.0 numpy==1.26.4"), variables=(("XLA_FLAGS", "--xla_cpu_use_thunk_runtime=false"),)
    )
    assert parse_target(write_named(long, "1.2")) == replace(long, name="rung-1.2")
    assert write_named(parse_target("2.20.0 keras=2"), "1.2") == "2.20.0 keras=2"

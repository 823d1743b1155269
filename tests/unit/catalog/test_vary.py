"""Targets crossed with releases of packages: what is made of them, and what is said of those that cannot be."""

import pytest

from orchestrator.catalog import vary
from orchestrator.catalog.vary import cross
from orchestrator.errors import UsageError

KERAS = ["3.5.0", "3.6.0", "3.7.0rc1", "3.7.0", "3.8.0", "3.10.0"]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The index has these releases; what it was asked for."""
    found: list[tuple[str, str]] = []

    def list_releases(package: str, python: str) -> list[str]:
        found.append((package, python))
        return [number for number in KERAS if "rc" not in number] if package == "keras" else []

    monkeypatch.setattr(vary, "list_final_releases", list_releases)
    return found


def test_every_target_gets_every_combination_in_the_order_that_was_written():
    assert cross(["2.20", "2.21 TF_X=1"], ["keras=3.5,3.8.0", "numpy=1.26"], "cpu") == (
        "2.20.0 keras==3.5.0 numpy==1.26.0",
        "2.20.0 keras==3.8.0 numpy==1.26.0",
        "2.21 keras==3.5.0 numpy==1.26.0 TF_X=1",
        "2.21 keras==3.8.0 numpy==1.26.0 TF_X=1",
    )
    assert cross(["2.20"], [], "cpu") == ("2.20",)


def test_a_range_takes_the_releases_of_the_index_for_the_python_of_the_first_target(asked: list[tuple[str, str]]):
    assert cross(["2.20"], ["keras=3.6..3.8"], "cpu") == tuple(
        f"2.20.0 keras=={number}" for number in ("3.6.0", "3.7.0", "3.8.0")
    )
    assert asked == [("keras", "3.11")]
    cross(["2.20 py=3.12"], ["keras=3.5..3.6"], "cpu")
    assert asked[-1] == ("keras", "3.12")


def test_several_versions_of_a_text_are_crossed_one_by_one():
    assert cross(["2.19..2.20"], ["keras=3.8"], "cpu") == ("2.19.1 keras==3.8.0", "2.20.0 keras==3.8.0")
    assert cross(["2.20.1"], ["keras=3.8"], "cpu") == ("2.20.1 keras==3.8.0",)


def test_the_releases_of_a_target_without_tensorflow_replace_the_one_that_it_has_to_name():
    assert cross(["keras==3.5.0 backend=jax"], ["keras=3.6,3.8"], "cpu") == (
        "keras==3.6.0 backend=jax",
        "keras==3.8.0 backend=jax",
    )


def test_a_target_with_a_name_gets_one_for_each_release():
    assert cross(["2.20 TF_X=1 as mine"], ["keras=3.5,3.8"], "cpu") == (
        "2.20 keras==3.5.0 TF_X=1 as mine-keras-3.5.0",
        "2.20 keras==3.8.0 TF_X=1 as mine-keras-3.8.0",
    )


@pytest.mark.parametrize(
    ("varied", "words"),
    [
        ("keras", "--vary 'keras': write PACKAGE=VERSION,VERSION,..., such as keras=3.5,3.8 or keras=3.5..3.8"),
        ("keras==3.5", "--vary 'keras==3.5': write PACKAGE=VERSION"),
        ("keras=,", "--vary 'keras=,': it names no release; write PACKAGE=VERSION"),
        ("keras=new", "'new' is no release"),
        ("keras=3.5..", "'3.5..' is no release"),
        ("keras=../etc", "'../etc' is no release"),
        ("keras=3.8..3.5", "3.8..3.5 runs backwards: write 3.5..3.8"),
        ("keras=4..5", "the index has no release of keras from 4 to 5 for Python 3.11"),
        ("tensorflow-cpu=2.19,2.20", "the version of a target is its TensorFlow; name several with --versions"),
        (f"keras={','.join(f'3.{minor}' for minor in range(65))}", "makes 65 targets; at most 64"),
        ("\x1b[2Jkeras=1", r"--vary '\\x1b\[2Jkeras=1': write"),
    ],
)
def test_what_cannot_be_varied_is_refused_with_what_to_write(varied: str, words: str):
    with pytest.raises(UsageError, match=words):
        cross(["2.20"], [varied], "cpu")


def test_a_package_is_varied_once():
    with pytest.raises(UsageError, match="--vary names keras twice"):
        cross(["2.20"], ["keras=3.5", "Keras=3.8"], "cpu")

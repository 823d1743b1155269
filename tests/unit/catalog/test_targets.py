"""How targets are written, and what is said of those that are not."""

from pathlib import Path

import pytest

from orchestrator.catalog import targets
from orchestrator.catalog.targets import Changed
from orchestrator.errors import UsageError

WRITTEN = {
    "2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off": Changed(
        version="2.15", variables=(("TF_ENABLE_ONEDNN_OPTS", "0"),), name="onednn-off"
    ),
    "2.13 py=3.8": Changed(version="2.13", python="3.8"),
    "2.16 keras=2": Changed(version="2.16", keras="2"),
    "2.16 keras=2 TF_XLA_FLAGS='--a=1 --b' as both": Changed(
        version="2.16", keras="2", variables=(("TF_XLA_FLAGS", "--a=1 --b"),), name="both"
    ),
    "wheel=/w/tensorflow_cpu-2.15.1-cp311-cp311-linux_x86_64.whl as mine": Changed(
        wheel=Path("/w/tensorflow_cpu-2.15.1-cp311-cp311-linux_x86_64.whl"), name="mine"
    ),
    "image=nvcr.io/nvidia/tensorflow:24.01-tf2-py3 OMP_NUM_THREADS=1 as ngc": Changed(
        image="nvcr.io/nvidia/tensorflow:24.01-tf2-py3", variables=(("OMP_NUM_THREADS", "1"),), name="ngc"
    ),
    "2.15 EMPTY= as nothing": Changed(version="2.15", variables=(("EMPTY", ""),), name="nothing"),
    "2.15 as base": Changed(version="2.15", name="base"),
}


@pytest.mark.parametrize(("text", "changed"), WRITTEN.items(), ids=list(WRITTEN))
def test_a_target_is_read_as_it_is_written_and_written_as_it_is_read(text: str, changed: Changed):
    assert targets.parse_target(text) == changed
    assert targets.parse_target(str(changed)) == changed


def test_the_wheel_of_a_relative_path_is_the_one_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert targets.parse_target("wheel=dist/a.whl as mine").wheel == tmp_path / "dist" / "a.whl"


BAD = {
    "": "there is no version in it",
    "as mine": "there is no version in it",
    "TF_X=1": "it begins with TF_X=, and not with a version",
    "py=3.8 2.13": "it begins with py=, and not with a version",
    "2.13 2.14": "'2.14' is no change, like NAME=VALUE",
    "2.13 py=": "py= has no value",
    "2.13 py=2.7": "py=2.7: it is 3.8 or the like",
    "2.16 keras=4": "keras=4: it is 2 or 3",
    "2.13 kreas=2": "unknown change 'kreas' (did you mean keras?)",
    "2.13 tf_x=1": "unknown change 'tf_x'; variables are written in capital letters",
    "2.13 TF_X=1 TF_X=2": "TF_X is there twice",
    "2.13 py=3.8 py=3.9": "py is there twice",
    "2.13 image=a": "image= takes the place of a version, and so comes first",
    "2.13 TF_X='1": "a quotation mark is not closed",
    "2.13 TF_X=1 as": "after `as` comes its name",
    "2.13 as a b": "after `as` comes its name",
    "2.13 as a TF_X=1": "after `as` comes its name",
    "2.13 TF_X=1 as a+b": "after `as` comes its name",
    "2.13 TF_X=1 as latest": "'latest' names versions; take another name",
    "2.13 as 2.14": "after `as` comes its name",
    "2.13 PATH=/x": "PATH is set by tfcompare itself",
    "2.13 PYTHONHASHSEED=0": "PYTHONHASHSEED is set by tfcompare itself",
    "2.13 CUDA_VISIBLE_DEVICES=1": "CUDA_VISIBLE_DEVICES is not for a target: --gpus names them",
    "2.13 TF_API_TOKEN=x": "TF_API_TOKEN may hold a secret",
    "2.13 XLA_FLAGS=http://me:secret@host": "XLA_FLAGS may hold a secret",
    "image=a": "give it a name, such as `image=a as mine`",
    "wheel=a.whl": "give it a name, such as `wheel=a.whl as mine`",
    "wheel= as mine": "wheel= has no value",
    "image=a py=3.8 as mine": "an image is used as it is",
    "wheel=a.whl keras=2 as mine": "keras= changes a version of the table",
    "2.13 XLA_FLAGS='--a --b'": "add `as` and a short name",
    "2.13 XLA_FLAGS=--xla_dump_to=/tmp/x": "add `as` and a short name",
    "2.13 TF_X=a\nb as c": "characters that cannot be printed",
}


@pytest.mark.parametrize(("text", "words"), BAD.items(), ids=list(map(repr, BAD)))
def test_a_target_that_is_none_is_refused_with_its_place(text: str, words: str):
    with pytest.raises(UsageError) as refused:
        targets.parse_target(text)
    assert words in str(refused.value)
    assert repr(text) in str(refused.value)


def test_a_target_without_end_is_refused_without_being_shown():
    with pytest.raises(UsageError, match="a target of 5004 characters") as refused:
        targets.parse_target("2.13" + 1000 * " A=1 ")
    assert len(str(refused.value)) < 300


def test_only_a_text_without_changes_is_a_list():
    assert targets.split_targets(["2.15,2.16", "2.13 TF_X=a,b", "2.0 2.1", "2.15 as base", ",", "2.8..2.9"]) == (
        "2.15", "2.16", "2.13 TF_X=a,b", "2.0", "2.1", "2.15 as base", "2.8..2.9",
    )  # fmt: skip
    assert list(map(targets.is_plain, ("2.8..2.9", "2.13 py=3.8", "image=a", "2.15 as b"))) == [
        True,
        False,
        False,
        False,
    ]

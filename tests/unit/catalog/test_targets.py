"""How targets are written, and what is said of those that are not."""

from datetime import UTC, date, datetime
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
    "2.16 keras=2": Changed(version="2.16", keras_2=True),
    "2.16 keras=2 TF_XLA_FLAGS='--a=1 --b' as both": Changed(
        version="2.16", keras_2=True, variables=(("TF_XLA_FLAGS", "--a=1 --b"),), name="both"
    ),
    "wheel=/w/tensorflow_cpu-2.15.1-cp311-cp311-linux_x86_64.whl as mine": Changed(
        wheel=Path("/w/tensorflow_cpu-2.15.1-cp311-cp311-linux_x86_64.whl"), name="mine"
    ),
    "image=nvcr.io/nvidia/tensorflow:24.01-tf2-py3 OMP_NUM_THREADS=1 as ngc": Changed(
        image="nvcr.io/nvidia/tensorflow:24.01-tf2-py3", variables=(("OMP_NUM_THREADS", "1"),), name="ngc"
    ),
    "2.15 EMPTY= as nothing": Changed(version="2.15", variables=(("EMPTY", ""),), name="nothing"),
    "2.15 as base": Changed(version="2.15", name="base"),
    "2.20 keras==3.8.0": Changed(version="2.20", pins=("keras==3.8.0",)),
    "2.20 'numpy<2'": Changed(version="2.20", pins=("numpy<2",)),
    "2.20 protobuf~=5.0 'numpy>=1.26,<2.1' as pb5": Changed(
        version="2.20", pins=("protobuf~=5.0", "numpy>=1.26,<2.1"), name="pb5"
    ),
    "2.20 keras=2 py=3.12 keras==3.8.0 as-of=2026-01-31 TF_X=1": Changed(
        version="2.20",
        keras_2=True,
        python="3.12",
        pins=("keras==3.8.0",),
        as_of="2026-01-31",
        variables=(("TF_X", "1"),),
    ),
    "keras==3.15.1 backend=jax": Changed(pins=("keras==3.15.1",), backend="jax"),
    "keras==3.15.1 torch==2.13.0+cpu py=3.12 backend=torch OMP_NUM_THREADS=1 as t": Changed(
        pins=("keras==3.15.1", "torch==2.13.0+cpu"),
        python="3.12",
        backend="torch",
        variables=(("OMP_NUM_THREADS", "1"),),
        name="t",
    ),
    "2.20 today=2026-01-31": Changed(version="2.20", today="2026-01-31"),
    "2.20 freeze=/w/requirements.txt keras==3.8.0": Changed(
        version="2.20", freeze=Path("/w/requirements.txt"), pins=("keras==3.8.0",)
    ),
    "2.20 wheel=/w/keras-3.8.0-py3-none-any.whl TF_X=1": Changed(
        version="2.20", package=Path("/w/keras-3.8.0-py3-none-any.whl"), variables=(("TF_X", "1"),)
    ),
    "freeze=/w/requirements.txt as mine": Changed(freeze=Path("/w/requirements.txt"), name="mine"),
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
    "2.13 2.14": "'2.14' is not a change such as NAME=VALUE or PACKAGE==VERSION",
    "2.20 keras": "'keras' is not a change such as NAME=VALUE or PACKAGE==VERSION",
    "2.20 dist/keras-3.8.0.whl": "packages come from the index by version, and your own wheel is written wheel=FILE",
    "2.20 keras@git+https://host/keras": "packages come from the index by version",
    "2.20 'keras==3.8.0 @ https://host/k.whl'": "'keras==3.8.0 @ https://host/k.whl' is not a pip requirement",
    "2.20 keras==": "'keras==' is not a pip requirement such as keras==3.8.0 or numpy<2",
    "2.20 keras==latest": "'keras==latest' is not a pip requirement",
    "2.20 'keras>=3; python_version>\"3.8\"'": "has a marker after ';', but a target has only one Python",
    "2.20 tensorflow==2.19.0": "TensorFlow is pinned twice, by the first word and by tensorflow==2.19.0",
    "2.20 TensorFlow_CPU==2.19.0": "TensorFlow is pinned twice",
    "2.20 tf-nightly>2": "TensorFlow is pinned twice",
    "keras==3.8.0": "it begins with keras==3.8.0, and not with a version",
    "today": "it begins with today, and not with a version",
    "2.20 keras=3.8": "keras=3.8: write keras==3.8.0; keras=2 alone makes `tf.keras` Keras 2",
    "2.20 keras=3": "leave keras=3 out, or pin a release of it, such as keras==3.8.0",
    "2.20 numpy=1.26": "unknown change 'numpy'; to pin a package, write numpy==1.26",
    "2.20 as-of=yesterday": "as-of=yesterday: expected a date such as 2026-11-01",
    "2.20 as-of=20260131": "as-of=20260131: expected a date such as 2026-11-01",
    "2.20 as-of=2999-01-01": "that day is in the future",
    "2.20 as-of=2026-01-31 today": "as-of= and today name two days",
    "2.20 today today": "today is given twice",
    "2.20 freeze=a.txt today": "a freeze names all packages itself; leave as-of= and today out",
    "image=a keras==3.8.0 as mine": "an image is used as it is; keras==3.8.0 would change it",
    "image=a freeze=b.txt as mine": "an image is used as it is; freeze=",
    "2.20 a==1 b==2 c==3 d==4 e==5 f==6 g==7 h==8 i==9 j==10 k==11 l==12 m==13": "add `as` and a short name",
    "2.20 backend=jax": "backend=jax takes the place of TensorFlow: leave 2.20 out, and begin with a release of Keras",
    "freeze=a.txt keras==3.8.0 backend=jax": "leave the first word out",
    "backend=jax keras==3.8.0": "it begins with backend=, and not with a version",
    "numpy==2.0.0 backend=jax": "it names one release of Keras, and no package twice",
    "keras>=3.8 backend=jax": "it names one release of Keras, and no package twice",
    "keras==3.* backend=jax": "it names one release of Keras, and no package twice",
    "keras==3.8.0 keras==3.9.0 backend=jax": "it names one release of Keras, and no package twice",
    "keras==2.15.0 backend=jax": "Keras has other backends from 3.0.0 on",
    "keras==3.8.0 backend=jaxx": "backend=jaxx: it is jax or torch (did you mean jax?)",
    "keras==3.8.0 backend=tensorflow": "it is jax or torch; every target with a version has it",
    "keras==3.8.0 backend=": "backend= has no value",
    "keras==3.8.0 keras=2 backend=jax": "Keras 2 has no backend",
    "keras==3.8.0 backend=jax today": "today and backend= do not go together: pin jax instead",
    "keras==3.8.0 backend=jax tensorflow==2.20.0": "TensorFlow is pinned twice",
    "2.20 KERAS_BACKEND=jax": "another backend is written 'keras==3.15.1 backend=jax', without a TensorFlow",
    "2.13 py=": "py= has no value",
    "2.13 py=2.7": "py=2.7: expected a Python version such as 3.8",
    "2.16 keras=4": "keras=4: write keras==3.8.0",
    "2.13 kreas=2": "unknown change 'kreas' (did you mean keras?)",
    "2.13 tf_x=a": "unknown change 'tf_x'; variables are written in capital letters",
    "2.13 TF_X=1 TF_X=2": "TF_X is given twice",
    "2.13 py=3.8 py=3.9": "py is given twice",
    "2.13 image=a": "image= takes the place of a version, and so comes first",
    "2.13 TF_X='1": "a quotation mark is not closed",
    "2.13 TF_X=1 as": "the last word, after `as`, is its name",
    "2.13 as a b": "the last word, after `as`, is its name",
    "2.13 as a TF_X=1": "the last word, after `as`, is its name",
    "2.13 TF_X=1 as a+b": "the last word, after `as`, is its name",
    "2.13 TF_X=1 as latest": "'latest' stands for versions; choose another name",
    "2.13 as 2.14": "the last word, after `as`, is its name",
    "2.13 PATH=/x": "PATH is set by tfcompare itself",
    "2.13 PYTHONHASHSEED=0": "PYTHONHASHSEED is set by tfcompare itself",
    "2.13 CUDA_VISIBLE_DEVICES=1": "CUDA_VISIBLE_DEVICES is not for a target: --gpus names them",
    "2.13 TF_API_TOKEN=x": "TF_API_TOKEN may hold a secret",
    "2.13 XLA_FLAGS=http://me:secret@host": "XLA_FLAGS may hold a secret",
    "image=a": "give it a name, such as `image=a as mine`",
    "wheel=a.whl": "give it a name, such as `wheel=a.whl as mine`",
    "wheel= as mine": "wheel= has no value",
    "2.20 wheel= as mine": "wheel= has no value",
    "wheel=a.whl wheel=b.whl as mine": "your own TensorFlow takes no second wheel; pin a release",
    "2.20 wheel=a.whl wheel=b.whl as mine": "wheel is given twice",
    "image=a wheel=b.whl as mine": "an image is used as it is; wheel=",
    "image=a py=3.8 as mine": "an image is used as it is",
    "wheel=a.whl keras=2 as mine": "keras= works only for versions of the table",
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
    with pytest.raises(UsageError, match="at most 4096 characters, and this one has 5004") as refused:
        targets.parse_target("2.13" + 1000 * " A=1 ")
    assert len(str(refused.value)) < 450


def test_today_is_the_day_on_which_it_is_read():
    day = targets.parse_target("2.20 today").today
    assert date.fromisoformat(day) <= datetime.now(UTC).date()
    assert str(targets.parse_target("2.20 today")) == f"2.20 today={day}"
    assert targets.parse_target("2.20 today").build_name("2.20.0") == "2.20.0+today"


def test_the_name_of_a_target_has_its_pins_and_the_file_of_a_freeze_without_its_folder():
    assert targets.parse_target("2.20 keras==3.8.0 'numpy<2'").build_name("2.20.0") == "2.20.0+keras==3.8.0+numpy<2"
    assert targets.parse_target("2.20 freeze=/w/mine.txt").build_name("2.20.0") == "2.20.0+freeze=mine.txt"


def test_the_name_of_a_target_without_tensorflow_has_its_pins_and_its_backend():
    names = {
        "keras==3.15.1 backend=jax": "keras==3.15.1+jax",
        "keras==3.15.1 backend=jax jax==0.10.2 TF_X=1": "keras==3.15.1+jax==0.10.2+TF_X=1",
    }
    assert {text: targets.parse_target(text).build_name("") for text in names} == names


@pytest.mark.parametrize("text", ["2.20 today", "2.20 'numpy<2'", "2.20 keras!=3.8.0", "2.20 h5py~=3.0,!=3.1"])
def test_a_target_that_changes_packages_is_one_and_no_list(text: str):
    assert targets.split_targets([text]) == (text,)
    assert not targets.is_plain(text)


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

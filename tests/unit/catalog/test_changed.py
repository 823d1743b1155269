"""What becomes of a target: its version, its variables, and the lock that it takes. The resolver is asked elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import changed, lockfile, locking
from orchestrator.catalog.changed import find_changed, provide_targets, resolve_targets
from orchestrator.catalog.locking import Lock
from orchestrator.catalog.uv import Unresolved
from orchestrator.errors import UsageError
from orchestrator.terminal.view import View
from tests.support.heard import Heard
from tests.support.packages import own_tensorflow

HASH = 64 * "0"


class Resolver:
    """Stands in for uv: answers with what it was asked for, unless that has a word in it, and remembers the rest."""

    def __init__(self) -> None:
        self.asked: list[tuple[Lock, tuple[str, ...]]] = []
        self.refuses = ""

    def __call__(self, lock: Lock, constraints: Path, options: tuple[str, ...] = ()) -> str:
        self.asked.append((lock, tuple(options)))
        if self.refuses and any(self.refuses in option for option in options):
            raise Unresolved("they contradict each other")
        return f"{locking.INPUTS_PREFIX}{lock.inputs}\nsix==1.0 --hash=sha256:{HASH}\n"


@pytest.fixture
def resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    made = Resolver()
    monkeypatch.setattr(locking, "resolve_lock", made)
    yield made
    monkeypatch.undo()
    catalog.reread()


def test_variables_change_neither_the_lock_nor_the_version():
    version, usual = find_changed("2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off", "cpu"), catalog.find_version("2.15")
    assert usual
    assert (version.name, version.number, version.on("cpu")) == ("onednn-off", "2.15.1", usual.on("cpu"))
    assert version.variables == {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert find_changed("2.15 TF_ENABLE_ONEDNN_OPTS=0", "cpu").name == "2.15.1+TF_ENABLE_ONEDNN_OPTS=0"


def test_a_python_of_the_table_takes_its_lock():
    version = find_changed("2.13 py=3.8", "cpu")
    assert version.name == "2.13.0+py=3.8"
    assert [flavour.lock.name for flavour in version.flavours] == ["2.13.0-cpu-py3.8.txt"]
    assert [flavour.lock.parent for flavour in version.flavours] == [catalog.LOCKS]


def test_another_python_is_locked_on_first_use_and_not_again(resolver: Resolver):
    said: list[str] = []
    assert provide_targets(["2.12 py=3.10"], Heard(said), "cpu") == ("2.12.1 py=3.10",)
    assert said == ["2.12.1+py=3.10: locking it for Python 3.10"]
    [(lock, _)] = resolver.asked
    assert lock.python == "3.10"
    assert "pyarrow==21.0.0" in lock.requirements
    assert not [requirement for requirement in lock.requirements if requirement.startswith("numpy")]
    [flavour] = find_changed("2.12 py=3.10", "cpu").flavours
    assert flavour.lock == lock.path
    assert (flavour.python.number, flavour.python.image) == ("3.10", "python:3.10-slim")
    provide_targets(["2.12 py=3.10"], Heard(said), "cpu")
    assert len(said) == 1


def test_keras_2_is_a_package_and_a_variable(resolver: Resolver):
    assert provide_targets(["2.16 keras=2"], View(), "cpu") == ("2.16.2 keras=2",)
    version = find_changed("2.16 keras=2", "cpu")
    assert version.variables == {"TF_USE_LEGACY_KERAS": "1"}
    [flavour] = version.flavours
    assert flavour.lock.name == "2.16.2-cpu-py3.11-keras2.txt"
    [(lock, options)] = resolver.asked
    assert lock.requirements[-1] == "tf-keras==2.16.*"
    # All else stays as it is in the version.
    assert options == ("--constraints", str(catalog.LOCKS / "2.16.2-cpu-py3.11.txt"))


def test_what_contradicts_the_lock_of_the_version_is_resolved_without_it(resolver: Resolver):
    resolver.refuses = "2.16.2"
    provide_targets(["2.16 keras=2"], View(), "cpu")
    assert [len(options) for _, options in resolver.asked] == [2, 0]


def test_what_cannot_be_resolved_is_told_with_the_target(resolver: Resolver, monkeypatch: pytest.MonkeyPatch):
    def refuse(lock: Lock, constraints: Path, options: tuple[str, ...] = ()) -> str:
        raise Unresolved("no solution")

    monkeypatch.setattr(locking, "resolve_lock", refuse)
    with pytest.raises(UsageError, match=r"target '2.16 keras=2': it cannot be locked:\nno solution"):
        provide_targets(["2.16 keras=2"], View(), "cpu")


def test_a_wheel_is_locked_by_its_digest_like_the_release_that_it_takes_after(resolver: Resolver, tmp_path: Path):
    path = own_tensorflow(tmp_path, needs=("six>=1",))
    text = f"wheel={path} as mine"
    assert provide_targets([text], View(), "cpu") == (text,)
    version = find_changed(text, "cpu")
    [flavour] = version.flavours
    assert (version.name, version.number, flavour.wheel) == ("mine", "2.15.1+mine", path)
    release = catalog.find_version("2.15")
    assert release
    beside = [each for each in release.on("cpu")[0].requirements if not each.startswith("tensorflow")]
    [(lock, options)] = resolver.asked
    assert lock.requirements == ("six>=1", *beside)
    assert options[-1].endswith("2.15.1-cpu-py3.11.txt")
    assert [pin.name for pin in lockfile.read_lock(flavour.lock)] == ["six", "tensorflow-cpu"]
    before = flavour.lock
    own_tensorflow(tmp_path, needs=("six>=1",), code="built = 'again'\n")
    assert find_changed(text, "cpu").flavours[0].lock != before


@pytest.mark.parametrize(
    ("change", "words"),
    [("py=3.8", "it is for Python 3.11, and py=3.8 was asked for"), ("", "")],
    ids=["another Python", "its own"],
)
def test_a_wheel_decides_its_python(resolver: Resolver, tmp_path: Path, change: str, words: str):
    text = f"wheel={own_tensorflow(tmp_path)} {change} as mine"
    if words:
        with pytest.raises(UsageError, match=words):
            find_changed(text, "cpu")
    else:
        assert find_changed(text, "cpu").flavours[0].python.number == "3.11"


def test_a_wheel_for_an_unknown_python_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"it is for Python 3.99; tfcompare knows 3.6, "):
        find_changed(f"wheel={own_tensorflow(tmp_path, tags='cp399-cp399-linux_x86_64')} as mine", "cpu")


def test_an_image_has_nothing_but_its_name():
    version = find_changed("image=registry.example.org/tf:1 as ngc", "cpu")
    assert (version.name, version.number, version.flavours, version.image) == (
        "ngc", "", (), "registry.example.org/tf:1",
    )  # fmt: skip


def test_a_build_of_another_maker_is_an_image_that_a_target_may_give_variables():
    version = find_changed("1.15-nv TF_X=1 as nv", "gpu")
    assert version.image == "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    assert (version.name, version.number, version.flavours, version.variables) == (
        "nv", "1.15.5+nv23.03", (), {"TF_X": "1"},
    )  # fmt: skip
    named = catalog.find_version("2.17-nv")
    assert named
    assert named.image.startswith("nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:c83b37d2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2.15 keras=2", "2.15.1 has Keras 2 anyway"),
        ("2.15 keras=3", "Keras 3 needs TensorFlow 2.16 or newer"),
        ("2.16 keras=3", "2.16.2 has Keras 3 anyway"),
        ("2.13 py=3.14", "py=3.14: tfcompare knows 3.6, "),
        ("2.8..2.9 TF_X=1", "2.8..2.9 is 2 versions, and a target is one"),
        ("2.99 TF_X=1", "unknown version '2.99'"),
        ("2.17-nv keras=2", r"2.17.0\+nv25.02 is an image that is used as it is"),
        ("1.15-nv py=3.8", r"1.15.5\+nv23.03 is an image that is used as it is"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(text: str, words: str):
    with pytest.raises(UsageError, match=words):
        find_changed(text, "cpu")


def test_on_a_gpu_a_version_keeps_the_pythons_of_its_images():
    with pytest.raises(UsageError, match=r"py=3.12: on a GPU, 2.13.0 runs on 3.8 only"):
        find_changed("2.13 py=3.12", "gpu")
    assert [flavour.name for flavour in find_changed("2.13 py=3.8", "gpu").flavours] == ["gpu"]


def test_targets_stand_in_the_order_named():
    names = ["2.15 TF_X=1 as off", "2.15", "2.8..2.9", "2.13 py=3.8"]
    found = [version.name for version in resolve_targets(names, 2, "cpu")]
    assert found == ["off", "2.15.1", "2.8.4", "2.9.3", "2.13.0+py=3.8"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["2.15 TF_X=1 as a", "2.15 TF_X=2 as a"], "two targets are named a"),
        (["2.15", "2.15 as same"], "2.15.1 and same are the same target"),
        (["2.15 TF_X=1", "2.15.1 TF_X=1 as again"], "are the same target; to measure one twice, add --control"),
        (["2.15", "2.15.1", "2.15 TF_X=1"], "version 2.15.1 is named twice"),
        (["2.15 TF_X=1"], "a comparison takes at least two targets"),
        (["image=a as b", "image=a as c"], "b and c are the same target"),
    ],
)
def test_equal_targets_are_refused(texts: list[str], words: str):
    with pytest.raises(UsageError, match=words):
        resolve_targets(texts, 2, "cpu")


def test_a_definition_makes_the_target_again(resolver: Resolver):
    texts = ["2.16 keras=2 TF_XLA_FLAGS='--a=1 --b=2' as both", "2.13 py=3.8"]
    versions = resolve_targets(provide_targets(texts, View(), "cpu"), 2, "cpu")
    definitions = [version.changes.definition for version in versions if version.changes]
    assert list(changed.by_name(definitions, "cpu").values()) == list(versions)

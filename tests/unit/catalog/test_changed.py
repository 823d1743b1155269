"""What becomes of a target: its version, its variables, and the lock that it takes. The resolver is asked elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from tests.support.packages import own_tensorflow, wheel

HASH = 64 * "0"


@dataclass
class Asked:
    lock: Lock
    options: tuple[str, ...]

    @property
    def preferred(self) -> str:
        return self.lock.preferred


class Resolver:
    """Stands in for uv: gives its answer, unless the Python is one that it refuses, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.refuses: tuple[str, ...] = ()
        self.requires = ""
        self.answer = f"six==1.0 --hash=sha256:{HASH}\n"

    def __call__(self, lock: Lock, constraints: Path, options: tuple[str, ...] = ()) -> str:
        self.asked.append(Asked(lock, tuple(options)))
        if lock.python in self.refuses:
            raise Unresolved("error: No solution found\n  cause: they contradict each other.\n")
        if self.requires and not lock.overrides:
            raise Unresolved(f"error: No solution found\n  cause: Because {self.requires} and you require it.\n")
        return f"{locking.INPUTS_PREFIX}{lock.inputs}\n{self.answer}"


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
    [asked] = resolver.asked
    lock = asked.lock
    assert lock.python == "3.10"
    assert "pyarrow==21.0.0" in lock.requirements
    assert not [requirement for requirement in lock.requirements if requirement.startswith("numpy")]
    [flavour] = find_changed("2.12 py=3.10", "cpu").flavours
    assert flavour.lock == lock.path
    assert (flavour.python.number, flavour.python.image) == ("3.10", "python:3.10-slim")
    provide_targets(["2.12 py=3.10"], Heard(said), "cpu")
    assert len(said) == 1


def lock_of(number: str, python: str = "3.11") -> str:
    return (catalog.LOCKS / f"{number}-cpu-py{python}.txt").read_text()


def test_keras_2_is_a_package_and_a_variable(resolver: Resolver):
    assert provide_targets(["2.16 keras=2"], View(), "cpu") == ("2.16.2 keras=2",)
    version = find_changed("2.16 keras=2", "cpu")
    assert version.variables == {"TF_USE_LEGACY_KERAS": "1"}
    assert [flavour.python.number for flavour in version.flavours] == ["3.11"]
    [asked] = resolver.asked
    assert asked.lock.requirements == (
        "tensorflow-cpu==2.16.2", "tf-keras==2.16.*", "keras", "numpy", "pyarrow",
    )  # fmt: skip
    # All else stays as it is in the version, wherever that is possible.
    assert asked.preferred == lock_of("2.16.2")


def test_a_pin_replaces_what_the_version_has_and_all_else_is_preferred(resolver: Resolver):
    said: list[str] = []
    [definition] = provide_targets(["2.20 keras==3.8.0 'numpy<2.1'"], Heard(said), "cpu")
    assert definition == "2.20.0 keras==3.8.0 'numpy<2.1'"
    first = resolver.asked[0]
    assert first.lock.requirements == (
        "tensorflow-cpu==2.20.0", "protobuf", "pyarrow", "keras==3.8.0", "numpy<2.1",
    )  # fmt: skip
    assert {asked.preferred for asked in resolver.asked} == {
        lock_of("2.20.0", python) for python in ("3.10", "3.11", "3.12", "3.13")
    }
    version = find_changed(definition, "cpu")
    assert (version.name, version.number) == ("2.20.0+keras==3.8.0+numpy<2.1", "2.20.0")
    usual = catalog.find_version("2.20")
    assert usual
    assert [flavour.like for flavour in version.flavours] == list(usual.on("cpu"))
    asked = len(resolver.asked)
    provide_targets([definition], Heard(said), "cpu")
    assert len(resolver.asked) == asked


def test_a_pin_and_keras_2_go_with_another_python(resolver: Resolver):
    provide_targets(["2.20 keras=2 keras==3.8.0 py=3.9"], View(), "cpu")
    [asked] = resolver.asked
    assert asked.lock.python == "3.9"
    assert asked.lock.requirements == (
        "tensorflow-cpu==2.20.0", "tf-keras==2.20.*", "protobuf", "pyarrow", "keras==3.8.0",
    )  # fmt: skip
    [flavour] = find_changed("2.20 keras=2 keras==3.8.0 py=3.9", "cpu").flavours
    assert (flavour.python.number, flavour.like) == ("3.9", None)


def test_a_day_is_passed_to_the_resolver_and_prefers_no_version(resolver: Resolver):
    provide_targets(["2.21 as-of=2026-02-01 keras==3.12.0 py=3.12"], View(), "cpu")
    [asked] = resolver.asked
    assert asked.lock.requirements == ("tensorflow-cpu==2.21.0", "keras==3.12.0", "pyarrow")
    assert asked.options == ("--exclude-newer", "2026-02-01T23:59:59Z")
    assert asked.preferred == "pyarrow==21.0.0\n"


def test_today_is_locked_once_a_day_and_not_again_on_another(resolver: Resolver):
    [definition] = provide_targets(["2.21 today py=3.11"], View(), "cpu")
    assert resolver.asked[0].options == ()
    provide_targets([definition], View(), "cpu")
    assert len(resolver.asked) == 1
    with pytest.raises(UsageError, match="locked on 2026-01-05, and that lock is gone; as-of=2026-01-05 resolves"):
        provide_targets(["2.21 today=2026-01-05 py=3.11"], View(), "cpu")


def test_what_moved_unasked_and_what_is_no_part_of_the_version_is_said(resolver: Resolver):
    kept = [line for line in lockfile.read_lock(catalog.LOCKS / "2.21.0-cpu-py3.11.txt") if line.name != "optree"]
    pins = [replace(pin, number="3.8.0") if pin.name == "keras" else pin for pin in kept]
    extra = [lockfile.Pin("optree", "0.1.0", (HASH,)), lockfile.Pin("pandas", "2.0", (HASH,))]
    resolver.answer = "".join(f"{lockfile.write_pin(pin)}\n" for pin in (*pins, *extra))
    said: list[str] = []
    provide_targets(["2.21 keras==3.8.0 pandas==2.0 py=3.11"], Heard(said), "cpu")
    name = "2.21.0+py=3.11+keras==3.8.0+pandas==2.0"
    assert said == [
        f"{name}: locking it for Python 3.11",
        f"note: {name}: pandas is no part of 2.21.0, and changes nothing but for code that imports it",
        f"{name}: 1 package moved as well: optree 0.20.0 -> 0.1.0",
    ]


def test_a_pin_counts_although_another_package_asks_for_another_release_and_the_run_says_so(resolver: Resolver):
    resolver.requires = "tensorflow-cpu==2.20.0 depends on keras>=3.10.0"
    said: list[str] = []
    provide_targets(["2.20 keras==3.5.0 py=3.11"], Heard(said), "cpu")
    assert [asked.lock.overrides for asked in resolver.asked] == [(), ("keras==3.5.0",)]
    note = (
        "note: 2.20.0+py=3.11+keras==3.5.0: tensorflow-cpu==2.20.0 asks for keras>=3.10.0; the pin counts, as pip "
        "would do with a warning"
    )
    assert note in said
    # It is said of a lock that is there already as well.
    again: list[str] = []
    provide_targets(["2.20 keras==3.5.0 py=3.11"], Heard(again), "cpu")
    assert note in again


def test_a_python_for_which_nothing_fits_is_left_out_and_none_is_an_error(resolver: Resolver):
    resolver.refuses = ("3.11", "3.13")
    provide_targets(["2.21 keras==3.8.0"], View(), "cpu")
    assert [flavour.python.number for flavour in find_changed("2.21 keras==3.8.0", "cpu").flavours] == ["3.12"]
    resolver.refuses = ("3.11", "3.12", "3.13")
    with pytest.raises(UsageError) as refused:
        provide_targets(["2.21 keras==99"], View(), "cpu")
    assert str(refused.value).startswith(
        "target '2.21 keras==99': it cannot be locked: No solution found: they contradict each other. Change what"
    )


def test_on_a_gpu_a_pin_keeps_the_cuda_of_the_version(resolver: Resolver):
    provide_targets(["2.20 keras==3.12.0"], View(), "gpu")
    [asked] = resolver.asked
    assert asked.lock.requirements[0] == "tensorflow[and-cuda]==2.20.0"
    assert {"nvidia-cudnn-cu12", "nvidia-cublas-cu12"} <= set(asked.lock.requirements)
    assert asked.preferred == (catalog.LOCKS / "2.20.0-gpu-py3.11.txt").read_text()
    [flavour] = find_changed("2.20 keras==3.12.0", "gpu").on("gpu")
    assert flavour.cuda
    assert flavour.like == find_changed("2.20 as usual", "gpu").on("gpu")[0]


FREEZE = """\
# A comment, and what pip freeze prints of other origins.
tensorflow-cpu==2.21.0
keras==3.12.0
-e git+https://me:secret@host/own.git#egg=own
own @ file:///home/me/own
./dist/own-1.0.whl
numpy==2.1.3 \\
    --hash=sha256:00
"""


@pytest.fixture
def freeze(tmp_path: Path) -> Path:
    path = tmp_path / "freeze.txt"
    path.write_text(FREEZE)
    return path


def test_a_freeze_names_its_tensorflow_and_what_is_no_release_is_left_out(resolver: Resolver, freeze: Path):
    said: list[str] = []
    [definition] = provide_targets([f"freeze={freeze} keras==3.13.0 py=3.11 as mine"], Heard(said), "cpu")
    assert definition == f"2.21.0 py=3.11 freeze={freeze} keras==3.13.0 as mine"
    [asked] = resolver.asked
    # What the target pins counts more than the file.
    assert asked.lock.requirements == ("tensorflow-cpu==2.21.0", "numpy==2.1.3", "keras==3.13.0", "pyarrow")
    assert asked.preferred == lock_of("2.21.0")
    [left_out] = [line for line in said if "no releases" in line]
    assert left_out == (
        f"note: mine: these lines of {freeze} are no releases, and left out: -e git+https://****@host/own.git#egg=own, "
        "own @ file:///home/me/own, ./dist/own-1.0.whl"
    )
    assert find_changed(definition, "cpu").name == "mine"


@pytest.mark.parametrize(
    ("text", "first", "words"),
    [
        ("keras==3.8.0\n", "", "no TensorFlow is in .*freeze.txt; name it first, as in '2.20 freeze="),
        ("tensorflow==2.19.1\nkeras==3.8.0\n", "2.21", "TensorFlow is pinned twice, as 2.21.0 and, in .*, as 2.19.1"),
        ("tensorflow==2.19.1\ntensorflow-cpu==2.21.0\n", "2.21", "TensorFlow is pinned twice in it, as 2.19.1 and"),
        ("-e .\n-e git+https://a:b@host/x\n", "2.21", "no release of a package is in it: -e . and the like are left"),
        ("", "2.21", "no release of a package is in it"),
        ("keras==3.8.0\nkeras 3.8.0\n", "2.21", "line 2: 'keras 3.8.0' is no line that `pip freeze` prints"),
        ("keras==3.8.0\n\u202enumpy==1\n", "2.21", "line 2: .* is no line that `pip freeze` prints"),
        (b"\xff\xfe\x00", "2.21", "it is no text, and so no file that `pip freeze` wrote"),
        (b"a" * (2**20 + 1), "2.21", "it has more than 1 MiB"),
    ],
)
def test_a_freeze_that_does_not_fit_is_refused_with_its_place(
    resolver: Resolver, tmp_path: Path, text: str | bytes, first: str, words: str
):
    path = tmp_path / "freeze.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=words) as refused:
        provide_targets([f"{first} freeze={path}".strip()], View(), "cpu")
    assert "a:b@" not in str(refused.value)


def test_a_freeze_that_is_no_file_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"freeze=.*: No such file or directory; name a file"):
        find_changed(f"2.21 freeze={tmp_path / 'none.txt'}", "cpu")
    with pytest.raises(UsageError, match=r"freeze=.*: Is a directory"):
        find_changed(f"2.21 freeze={tmp_path}", "cpu")


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
    [asked] = resolver.asked
    assert asked.lock.requirements == ("six>=1", *beside)
    assert asked.preferred == lock_of("2.15.1")
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


def test_a_wheel_takes_the_place_of_a_package_of_a_version(resolver: Resolver, tmp_path: Path):
    path = wheel(tmp_path, "six", "1.16.0", needs=("attrs",))
    two_lines = " \\\n    ".join(f"--hash=sha256:{digit * 64}" for digit in "01")
    resolver.answer = f"absl-py==1.0 {two_lines}\nsix==1.0 {two_lines}\ntensorflow==1 {two_lines}\n"
    said: list[str] = []
    [text] = provide_targets([f"2.15 wheel={path}"], Heard(said), "cpu")
    assert text == f"2.15.1 wheel={path}"
    version = find_changed(text, "cpu")
    [flavour] = version.flavours
    assert (version.name, flavour.wheel) == ("2.15.1+wheel=six-1.16.0-py3-none-any.whl", path)
    [asked] = resolver.asked
    assert "attrs" in asked.lock.requirements
    assert asked.preferred == lock_of("2.15.1")
    assert lockfile.list_packages(flavour.lock) == {"absl-py": "1.0", "tensorflow": "1", "six": "1.16.0"}
    assert not [line for line in said if "is no part of" in line]
    wheel(tmp_path, "six", "1.16.0", code="built = 'again'\n")
    assert find_changed(text, "cpu").flavours[0].lock != flavour.lock


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("wheel={six} six==1.16.0", "six is pinned, and is a wheel as well; leave one of them out"),
        ("wheel={tensorflow}", "it contains TensorFlow itself; remove the version in front of it"),
        ("wheel={other}", r"is for Python 3.9, and this target has 3.11; build it for that, or add py="),
        ("wheel={absent}", "No such file or directory; give the path of a wheel file"),
        ("wheel={text}", "a wheel must keep the file name that it was built with"),
    ],
)
def test_a_wheel_that_does_not_go_with_a_version_is_refused(
    resolver: Resolver, tmp_path: Path, change: str, words: str
):
    other = wheel(tmp_path, "other")
    other = other.rename(tmp_path / "other-1.0-cp39-cp39-linux_x86_64.whl")
    (tmp_path / "text.whl").write_text("x")
    paths = {
        "six": wheel(tmp_path, "six"), "tensorflow": own_tensorflow(tmp_path), "other": other,
        "absent": tmp_path / "absent-1.0-py3-none-any.whl", "text": tmp_path / "text.whl",
    }  # fmt: skip
    with pytest.raises(UsageError, match=words):
        provide_targets([f"2.15 {change.format(**paths)} as mine"], View(), "cpu")


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
        ("2.15 keras=3", "leave keras=3 out"),
        ("2.13 py=3.14", "py=3.14: tfcompare knows 3.6, "),
        ("2.8..2.9 TF_X=1", "2.8..2.9 is 2 versions, and a target is one"),
        ("2.99 TF_X=1", "unknown version '2.99'"),
        ("2.17-nv keras=2", r"2.17.0\+nv25.02 is an image that is used as it is; keras=2 would change it"),
        ("2.17-nv keras==3.8.0", r"2.17.0\+nv25.02 is an image that is used as it is; keras==3.8.0 would change it"),
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

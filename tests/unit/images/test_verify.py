"""What was found inside an image beside what the table says: one line a thing, and each kind of change is seen."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.catalog import lock_hash, lockfile
from orchestrator.catalog.version import Flavour
from orchestrator.engines.docker import container
from orchestrator.engines.docker.inside import Inside, look_inside, parse_answer
from orchestrator.images import report
from orchestrator.images.verify import Verification, check_contents
from orchestrator.terminal.text import render_plain
from tests.unit.images.scenes import flavour, recipe, version, with_locks

HASH = "--hash=sha256:" + "1" * 64
LOCK = f"tensorflow==1.14.0 \\\n    {HASH}\nkeras==2.2.5 {HASH}\nnumpy==1.16.6 {HASH}\n# six==1\n"
PIP = f"pip==24.0 \\\n    {HASH} \\\n    {HASH}\nPy_Thing[extra]==1.0 {HASH}\n"
INSTALLED = {"tensorflow": "1.14.0", "keras": "2.2.5", "numpy": "1.16.6", "pip": "24.0", "py-thing": "1.0"}
NONE = {"count": 0, "first": []}
WHOLE = {"checked": 9000, "unhashed": 10, "missing": NONE, "changed": NONE, "added": NONE}


@pytest.fixture
def locked(tmp_path: Path) -> Flavour:
    return with_locks(flavour(python="3.7"), tmp_path, LOCK, PIP)


ANSWER: dict[str, Any] = {
    "python": "3.7.17",
    "distributions": INSTALLED,
    "unrecorded": [],
    "files": [WHOLE],
    "imported": {"tensorflow": "1.14.0", "numpy": "1.16.6", "cuda_build": False},
}


def inside(**changes: Any) -> Inside:
    return parse_answer(json.dumps({**ANSWER, **changes}))


def wrong(found: Inside | str, locked: Flavour, number: str = "1.14.0", **labels: str) -> dict[str, str]:
    """What is wrong, by its subject."""
    made = recipe(lock=lock_hash(locked))
    checks = list(check_contents(found, {**made.labels, **labels}, version(number), locked, made))
    return {check.subject: check.found for check in checks if not check.ok}


def test_an_image_as_it_was_built_is_right_in_everything(locked: Flavour):
    made = recipe(lock=lock_hash(locked))
    checks = list(check_contents(inside(), made.labels, version("1.14.0"), locked, made))
    assert [check.subject for check in checks] == [
        "spec label", "lock label", "TensorFlow", "Keras", "Python", "numpy", "build", "packages", "files",
    ]  # fmt: skip
    assert all(check.ok for check in checks)
    assert [check.found for check in checks][2:] == [
        "1.14.0", "2.2.5", "3.7.17", "1.16.6", "CPU", "5 as locked", "9000 as recorded",
    ]  # fmt: skip


def test_a_lock_is_read_for_its_pins_and_names_are_compared_as_indexes_do(locked: Flavour):
    assert lockfile.list_packages(locked.pip_lock, locked.lock) == INSTALLED


CHANGES = {
    "another TensorFlow": ({"imported": {**ANSWER["imported"], "tensorflow": "1.14.1"}}, "TensorFlow", "1.14.1"),
    "a TensorFlow that fails": (
        {"imported": {"error": "ImportError: libfoo"}}, "TensorFlow", "cannot be imported: ImportError: libfoo",
    ),
    "a CUDA build": ({"imported": {**ANSWER["imported"], "cuda_build": True}}, "build", "CUDA"),
    "another Python": ({"python": "3.6.15"}, "Python", "3.6.15"),
    "another numpy": ({"imported": {**ANSWER["imported"], "numpy": "1.17.0"}}, "numpy", "1.17.0"),
    "another Keras": ({"distributions": {**INSTALLED, "keras": "2.3.1"}}, "Keras", "2.3.1"),
    "another package": (
        {"distributions": {**INSTALLED, "pip": "25.0"}}, "packages", "pip is 25.0, but 24.0 is locked",
    ),
    "one package more": ({"distributions": {**INSTALLED, "rogue": "1.0"}}, "packages", "rogue 1.0 is extra"),
    "one package less": (
        {"distributions": {name: number for name, number in INSTALLED.items() if name != "pip"}},
        "packages", "pip is missing",
    ),
    "a package without a record": ({"unrecorded": ["pip"]}, "packages", "pip has no record of its files"),
    "a changed file": (
        {"files": [{**WHOLE, "changed": {"count": 1, "first": ["six.py"]}}]}, "files", "changed six.py",
    ),
    "a missing file": (
        {"files": [{**WHOLE, "missing": {"count": 1, "first": ["six.py"]}}]}, "files", "missing six.py",
    ),
    "a file of nobody's": (
        {"files": [{**WHOLE, "added": {"count": 1, "first": ["evil.pth"]}}]}, "files", "added evil.pth",
    ),
    "no file at all": ({"files": [{**WHOLE, "checked": 0}]}, "files", "0 as recorded"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "subject", "told"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(locked: Flavour, changes: dict[str, Any], subject: str, told: str):
    assert wrong(inside(**changes), locked)[subject] == told


def test_no_answer_is_told_with_its_reason(locked: Flavour):
    assert wrong("killed by SIGKILL", locked) == {"start": "killed by SIGKILL"}


NO_INVENTORIES = {
    "nothing in it": ("{}", "python: Field required"),
    "nothing imported": ('{"imported": {}}', "python: Field required"),
    "a list": ('{"imported": [1]}', "python: Field required"),
    "no object": ("[1]", "all of it: Input should be"),
    "another kind of value": (json.dumps({**ANSWER, "imported": [1]}), "imported: Input should be"),
    "a negative count": (json.dumps({**ANSWER, "files": [{**WHOLE, "checked": -1}]}), "files.0.checked: Input"),
    "a package whose name is an address": (
        json.dumps({**ANSWER, "distributions": {"pyarrow @ http://127.0.0.1:1/x.tar.gz\nx": "1.0"}}),
        r"distributions.'pyarrow @ http://127.0.0.1:1/x.tar.gz\nx'.[key]: String should match pattern",
    ),
    **{
        f"a package named {name!r}": (json.dumps({**ANSWER, "distributions": {name: "1.0"}}), "should match pattern")
        for name in ("six\n", "\nsix", "two words", "-r", "six;x", "six[extra]", "sīx", "")
    },
    **{
        f"a package of version {number!r}": (
            json.dumps({**ANSWER, "distributions": {"six": number}}),
            "distributions.six: String should match pattern",
        )
        for number in ("1.0\n", "1.0\nevil @ http://127.0.0.1:1/x.tar.gz", "1.0 ", "1.0\u2028x", "1.0\x1b")
    },
    "an unrecorded package with a line end": (json.dumps({**ANSWER, "unrecorded": ["a\nb"]}), "unrecorded.0: String"),
    "a Python with a line end": (json.dumps({**ANSWER, "python": "3.7.17\nx"}), "python: String should match"),
    "no JSON": ("hello", "Expecting value"),
    "deep nesting": ("[" * 10**6, "recursion"),
    "a number without end": ("1" * 10**4, "integer string conversion"),
}


def test_names_and_versions_of_honest_packages_are_taken():
    honest = {"Py_Thing.more-2": "1!2.0rc1.post3+local.1", "a": "0", "zope.interface": "5.4.0", "old": ""}
    assert inside(distributions=honest, unrecorded=["old"]).distributions == honest


@pytest.mark.parametrize(("answer", "words"), NO_INVENTORIES.values(), ids=NO_INVENTORIES)
def test_an_answer_that_is_no_inventory_is_a_failed_check(
    locked: Flavour, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, words: str
):
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path))
    places: list[Path] = []

    def create(client: None, spec: container.Spec) -> str:
        places.append(spec.results)
        return "c"

    channel = SimpleNamespace(receive=lambda timeout_s: answer, close=lambda: None)
    monkeypatch.setattr(container, "create", create)
    monkeypatch.setattr(container, "ContainerChannel", lambda *given: channel)
    client: Any = None
    told = wrong(look_inside(client, "sha256:1", "1.14.0"), locked)["start"]
    assert told.startswith("its answer is no inventory: ")
    assert words in told
    assert places[0].is_relative_to(tmp_path / "tfcompare"), "where an engine outside sees it"
    assert not list((tmp_path / "tfcompare").iterdir())


def test_an_inventory_without_an_import_is_wrong_in_what_it_lacks(locked: Flavour):
    assert wrong(inside(imported={}), locked) == {
        "TensorFlow": "", "build": "unknown: TensorFlow cannot be imported",
    }  # fmt: skip
    assert wrong(inside(imported={**ANSWER["imported"], "tensorflow": "1" * 5000}), locked).keys() == {"TensorFlow"}


def test_labels_that_are_not_the_recipes_are_seen(locked: Flavour):
    assert wrong(inside(), locked, **{"tfcompare.spec": "b", "tfcompare.lock": "c"}) == {
        "spec label": "b", "lock label": "c",
    }  # fmt: skip


def test_of_thousands_of_changed_files_the_first_are_told_and_the_others_counted(locked: Flavour):
    many = {"count": 1234, "first": [f"file{number}" for number in range(20)]}
    told = wrong(inside(files=[{**WHOLE, "changed": many}]), locked)["files"]
    assert told == "; ".join(f"changed file{number}" for number in range(5)) + ", and 1229 more"


@pytest.mark.parametrize(
    ("number", "name", "said", "right"),
    [
        ("1.14.0", "gpu", {"cuda_build": True}, True),
        ("1.14.0", "gpu", {"cuda_build": True, "cuda_version": "10"}, True),
        ("1.14.0", "gpu", {"cuda_build": True, "cuda_version": "11.2"}, False),
        ("1.14.0", "gpu", {"cuda_build": False}, False),
        ("2.20.0", "gpu", {"cuda_build": True, "cuda_version": "12.5.1"}, True),
        ("2.13.0", "cpu", {"cuda_build": False}, True),
        ("2.13.0", "cpu", {"cuda_build": True, "cuda_version": "11.8"}, False),
    ],
)
def test_a_build_is_for_what_its_flavour_is_for(
    tmp_path: Path, number: str, name: str, said: dict[str, Any], right: bool
):
    of = with_locks(flavour(number, name), tmp_path, LOCK, PIP)
    found = inside(imported={"tensorflow": number, "numpy": "1.16.6", **said})
    assert ("build" not in wrong(found, of, number)) is right


def test_a_tensorflow_with_cuda_in_a_cpu_flavour_that_asks_for_it_is_no_error(locked: Flavour):
    whole = replace(locked, requirements=("tensorflow==2.5.3",))
    found = inside(imported={"tensorflow": "2.5.3", "numpy": "1.16.6", "cuda_build": True, "cuda_version": "11.2"})
    assert "build" not in wrong(found, whole)


def test_a_nightly_that_writes_its_date_with_a_dash_is_itself(locked: Flavour):
    nightly = replace(version("1.14.0"), number="2.23.0.dev20261026")
    made = recipe(lock=lock_hash(locked))
    found = inside(imported={**ANSWER["imported"], "tensorflow": "2.23.0-dev20261026"})
    [check] = [one for one in check_contents(found, made.labels, nightly, locked, made) if one.subject == "TensorFlow"]
    assert check.ok


def test_the_table_tells_what_was_expected_only_where_it_was_not_found(locked: Flavour):
    made = recipe(lock=lock_hash(locked))
    found = inside(python="3.6.15", imported={"error": "a\nb"})
    checks = tuple(check_contents(found, made.labels, version("1.14.0"), locked, made))
    one = Verification(version="1.14.0", flavour="cpu", image=made.tag, checks=checks)
    text = render_plain(lambda width: report.of_checks([one]))
    assert not one.ok
    assert f" {made.spec[:12]}\n" in text, "a hash is told by its beginning"
    assert "3.6.15; expected: 3.7" in text
    assert text.count("expected:") == sum(not check.ok for check in checks)
    assert one.as_object()["checks"][4] == {"subject": "Python", "ok": False, "expected": "3.7", "found": "3.6.15"}

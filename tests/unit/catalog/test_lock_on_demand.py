"""Which nightly is meant, and what a patch is locked with; the resolver itself is asked in tests/engines."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog import lock_on_demand, user_data
from orchestrator.errors import UsageError
from orchestrator.parallel import run_parallel

KNOWN = {
    "2.22.0.dev20260901": "tf-nightly-cpu",
    "2.22.0.dev20260905": "tf-nightly-cpu",
    "2.23.0.dev20261026": "tf-nightly",
    "2.22.0rc0": "tf-nightly",
}


def chosen(name: str, known: dict[str, str] = KNOWN) -> tuple[str, str, list[str]]:
    said: list[str] = []
    package, number = lock_on_demand.nearest(name, known, said.append)
    return package, number, said


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("nightly", "2.23.0.dev20261026"),
        ("nightly-20260901", "2.22.0.dev20260901"),
        ("2.22.0.dev20260905", "2.22.0.dev20260905"),
    ],
)
def test_a_nightly_is_the_newest_or_the_one_of_its_day(name: str, number: str):
    assert chosen(name) == (KNOWN[number], number, [])


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("nightly-20260903", "2.22.0.dev20260901"),
        ("nightly-20270101", "2.23.0.dev20261026"),
        ("nightly-20250101", "2.22.0.dev20260901"),
        ("2.22.0.dev20260904", "2.22.0.dev20260901"),
    ],
)
def test_a_day_without_one_takes_the_nearest_and_says_so(name: str, number: str):
    _, found, said = chosen(name)
    assert found == number
    assert said == [f"{name}: the index has none of that day; taking {number}"]


@pytest.mark.parametrize("name", ["nightly-20260901", "nightly-20260903"])
@pytest.mark.parametrize("order", [1, -1])
def test_of_two_nightlies_of_a_day_the_later_number_is_meant(name: str, order: int):
    numbers = ["2.9.0.dev20260901", "2.22.0.dev20260901", "2.21.0.dev20260901"][::order]
    assert chosen(name, dict.fromkeys(numbers, "tf-nightly"))[1] == "2.22.0.dev20260901"


def test_no_nightly_at_all_is_told():
    with pytest.raises(UsageError, match="the index has no nightly"):
        chosen("nightly", {"2.22.0rc0": "tf-nightly"})


def test_names_that_a_table_has_need_no_lock():
    assert lock_on_demand.provide(["1.14", "2.0.0", "all", "2.8..2.9"], _unheard) == (
        "1.14",
        "2.0.0",
        "all",
        "2.8..2.9",
    )


def test_a_patch_of_an_unknown_release_says_where_to_describe_it():
    with pytest.raises(UsageError, match=r"3.0.1: no release 3.0 is in the table .*versions.toml"):
        lock_on_demand.provide(["3.0.1"], _unheard)


def test_a_patch_takes_the_pins_of_its_release():
    release = catalog.builtin_catalogue().version["2.3.4"].cpu
    assert release is not None
    wanted = lock_on_demand._requirements(release, "2.3.1", "3.7", keep_keras=True)
    assert wanted == [text.replace("2.3.4", "2.3.1") for text in release.requirements]


def test_on_another_python_it_takes_that_pythons_pyarrow_and_no_numpy():
    release = catalog.builtin_catalogue().version["2.11.0"].cpu
    assert release is not None
    wanted = lock_on_demand._requirements(release, "2.11.1", "3.8", keep_keras=True)
    assert wanted == ["tensorflow-cpu==2.11.1", "keras==2.11.0", "pyarrow==17.0.0"]
    assert lock_on_demand._pythons(release)[:2] == ["3.7", "3.6"]


def _unheard(text: str) -> None:
    raise AssertionError(text)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    yield
    monkeypatch.undo()
    catalog.reread()


def _keep(number: str) -> None:
    lock_on_demand._keep(number, "3.11", (f"tf-nightly=={number}",), "", lambda text: None)


@pytest.mark.usefixtures("own_folder")
def test_a_version_that_two_runs_lock_at_once_stands_in_the_table_once():
    _keep("2.99.0.dev20990101")
    before = user_data.table().read_text()
    _keep("2.99.0.dev20990101")
    assert user_data.table().read_text() == before


@pytest.mark.usefixtures("own_folder")
def test_versions_that_are_locked_at_once_are_all_in_the_table():
    numbers = [f"2.99.0.dev209901{day}" for day in range(10, 26)]
    run_parallel(_keep, numbers)
    assert [version.number for version in catalog.all_versions() if ".dev2099" in version.number] == numbers


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "NewConnectionError('<HTTPConnection object at 0x7f>: Failed to connect: [Errno 111] Connection refused')",
            "Connection refused",
        ),
        ("ResponseError('too many 503 error responses')", "too many 503 error responses"),
        ("ConnectTimeoutError(<HTTPSConnection object at 0x7f>, 'Connection timed out.')", "Connection timed out."),
        ("ReadTimeoutError(\"HTTPSConnectionPool(host='x', port=443): Read timed out.\")", "Read timed out."),
        ("ProtocolError('Connection aborted.', RemoteDisconnected('Remote end closed'))", "Remote end closed"),
        ("IncompleteRead", "IncompleteRead"),
    ],
)
def test_why_an_index_does_not_answer_is_told_without_what_pip_calls_its_connections(said: str, cause: str):
    assert lock_on_demand._cause(said) == cause


def test_pip_which_lists_nightlies_is_a_dependency():
    """An environment of uv's has none by itself."""
    project = tomllib.loads((IMAGES.parent / "pyproject.toml").read_text())["project"]
    assert [name for name in project["dependencies"] if name.startswith("pip>=")]
    assert "\npip==" in (IMAGES.parent / "requirements" / "run.txt").read_text()

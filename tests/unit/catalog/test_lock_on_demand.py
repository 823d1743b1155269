"""Which nightly is meant, and what a patch is locked with; the resolver itself is asked in tests/engines."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog import architectures, lock_on_demand, locking, package_index, user_data
from orchestrator.catalog.table import FlavourTable
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.errors import UsageError
from orchestrator.parallel import run_parallel
from orchestrator.terminal.view import View
from tests.support.heard import Heard, Listener

KNOWN = {
    "2.22.0.dev20260901": "tf-nightly-cpu",
    "2.22.0.dev20260905": "tf-nightly-cpu",
    "2.23.0.dev20261026": "tf-nightly",
    "2.22.0rc0": "tf-nightly",
}


def chosen(name: str, known: dict[str, str] = KNOWN) -> tuple[str, str, list[str]]:
    said: list[str] = []
    package, number = lock_on_demand.find_nearest_nightly(name, known, Heard(said))
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
    assert said == [f"{name}: the index has no nightly of that day; using {number}"]


@pytest.mark.parametrize("name", ["nightly-20260901", "nightly-20260903"])
@pytest.mark.parametrize("order", [1, -1])
def test_of_two_nightlies_of_a_day_the_later_number_is_meant(name: str, order: int):
    numbers = ["2.9.0.dev20260901", "2.22.0.dev20260901", "2.21.0.dev20260901"][::order]
    assert chosen(name, dict.fromkeys(numbers, "tf-nightly"))[1] == "2.22.0.dev20260901"


def test_no_nightly_at_all_is_told():
    with pytest.raises(UsageError, match="the index has no nightly"):
        chosen("nightly", {"2.22.0rc0": "tf-nightly"})


def test_names_that_a_table_has_need_no_lock():
    assert lock_on_demand.provide_locks(["1.14", "2.0.0", "all", "2.8..2.9"], Listener(_unheard)) == (
        "1.14",
        "2.0.0",
        "all",
        "2.8..2.9",
    )


def test_a_patch_of_an_unknown_release_says_where_to_describe_it():
    with pytest.raises(UsageError, match=r"3.0.1: no release 3.0 is in the table .*versions.toml"):
        lock_on_demand.provide_locks(["3.0.1"], Listener(_unheard))


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
    assert architectures.order_pythons(release.pythons, catalog.builtin_catalogue().python)[:2] == ["3.7", "3.6"]


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
    flavour = FlavourTable(pythons=("3.11",), requirements=(f"tf-nightly=={number}",))
    lock_on_demand._store_lock(number, "cpu", flavour, "", View())


@pytest.fixture
def resolver(own_folder: None, monkeypatch: pytest.MonkeyPatch) -> list[locking.Lock]:
    """Stands in for uv: answers with what it was asked for, and remembers it."""
    asked: list[locking.Lock] = []

    def resolve(lock: locking.Lock, *options: object) -> str:
        asked.append(lock)
        header = f"{locking.WRITTEN_BY}{lock.command}\n{locking.INPUTS_PREFIX}{lock.inputs}\n"
        return header + "keras==3.0 --hash=sha256:0\nnvidia-cuda-runtime-cu12==12.3.101 --hash=sha256:0\n"

    monkeypatch.setattr(locking, "resolve_lock", resolve)
    return asked


def provide(name: str, device: FlavourName, index: dict[str, str] | None = None) -> Version:
    (number,) = lock_on_demand.provide_locks([name], View(), index, device=device)
    [version] = catalog.resolve_versions([number], fewest=1)
    return version


def test_a_patch_on_a_gpu_takes_the_cuda_and_the_base_of_its_release(resolver: list[locking.Lock]):
    version = provide("2.3.1", "gpu")
    [flavour], [release] = version.on("gpu"), catalog.resolve_versions(["2.3"], fewest=1)[0].on("gpu")
    assert (flavour.cuda, flavour.image, flavour.python) == (release.cuda, release.image, release.python)
    assert flavour.requirements == tuple(text.replace("2.3.4", "2.3.1") for text in release.requirements)
    assert version.on("cpu") == ()


def test_its_libraries_are_locked_with_it(resolver: list[locking.Lock]):
    [flavour] = provide("2.12.0", "gpu").on("gpu")
    assert "nvidia-cudnn-cu11==8.7.0.84" in flavour.requirements
    assert resolver[0].requirements == flavour.requirements
    assert flavour.cuda
    assert (flavour.cuda.number, flavour.cuda.libraries) == ("11.8", "11.8")


def test_what_is_locked_for_one_device_is_locked_for_the_other_when_that_is_asked_for(
    resolver: list[locking.Lock],
):
    provide("2.12.0", "cpu")
    between = provide("2.9.1", "cpu")
    both = provide("2.12.0", "gpu")
    assert [flavour.name for flavour in both.flavours] == ["cpu", "gpu"]
    assert provide("2.12.0", "gpu") == provide("2.12.0", "cpu") == both
    assert len(resolver) == 3
    lock_on_demand.forget_lock(both)
    assert [flavour.lock.exists() for flavour in both.flavours] == [False, False]
    assert [version for version in catalog.all_versions() if version.number in ("2.9.1", "2.12.0")] == [between]


def test_a_nightly_on_a_gpu_brings_its_own_cuda(resolver: list[locking.Lock]):
    index = {"2.23.0.dev20261026": "tf-nightly"}
    [flavour] = provide("nightly", "gpu", index).on("gpu")
    assert flavour.requirements[0] == "tf-nightly[and-cuda]==2.23.0.dev20261026"
    assert flavour.image == flavour.python.image
    assert flavour.cuda
    assert (flavour.cuda.number, flavour.cuda.cudnn) == ("12.3", None), "as its lock says"
    newest = catalog.releases()[-1].on("gpu")[0].cuda
    assert newest
    assert flavour.cuda.compute == newest.compute


def test_a_comment_of_the_user_stays_where_it_was(resolver: list[locking.Lock]):
    provide("2.12.0", "cpu")
    provide("2.9.1", "cpu")
    text = user_data.find_user_table().read_text()
    user_data.write_user_file(
        user_data.find_user_table(), text.replace('\n[version."2.9.1"]', '\n# Mine, about 2.9.\n[version."2.9.1"]')
    )
    catalog.reread()
    both = provide("2.12.0", "gpu")
    assert '\n# Mine, about 2.9.\n[version."2.9.1"]' in user_data.find_user_table().read_text()
    lock_on_demand.forget_lock(both)
    assert '# Mine, about 2.9.\n[version."2.9.1"]' in user_data.find_user_table().read_text()


def test_a_newest_release_of_the_users_own_is_no_model_for_a_nightly(resolver: list[locking.Lock]):
    provide("2.9.1", "cpu")
    own = (
        user_data.find_user_table()
        .read_text()
        .replace('[version."2.9.1"]', '[version."2.99.0"]\naliases = ["2.99"]', 1)
    )
    user_data.write_user_file(user_data.find_user_table(), own.replace('"2.9.1"', '"2.99.0"'))
    catalog.reread()
    assert catalog.releases()[-1].number == "2.99.0"
    assert provide("nightly", "cpu", {"2.23.0.dev20261026": "tf-nightly"}).on("cpu")[0].python.number == "3.11"


def test_a_table_that_its_user_wrote_is_left_alone(own_folder: None):
    lines = ('[version."2.12.0"]', 'keras = ""', "[version.'2.12.0'.cpu]", 'pythons = ["3.11"]', 'requirements = ["x"]')
    user_data.write_user_file(user_data.find_user_table(), "\n".join(lines))
    catalog.reread()
    assert lock_on_demand.provide_locks(["2.12.0"], Listener(_unheard), device="gpu") == ("2.12.0",)


@pytest.mark.usefixtures("own_folder")
def test_a_version_that_two_runs_lock_at_once_stands_in_the_table_once():
    _keep("2.99.0.dev20990101")
    before = user_data.find_user_table().read_text()
    _keep("2.99.0.dev20990101")
    assert user_data.find_user_table().read_text() == before


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
    assert package_index._cause(said) == cause


def test_pip_which_lists_nightlies_is_a_dependency():
    """An environment of uv's has none by itself."""
    project = tomllib.loads((IMAGES.parent / "pyproject.toml").read_text())["project"]
    assert [name for name in project["dependencies"] if name.startswith("pip>=")]
    assert "\npip==" in (IMAGES.parent / "requirements" / "run.txt").read_text()

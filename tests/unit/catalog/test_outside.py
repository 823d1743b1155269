"""What a workload folder uses outside of itself needs the user's word, or the user's trust in exactly that."""

from pathlib import Path

import pytest

from orchestrator.catalog import outside, trust
from orchestrator.catalog import workloads as suites
from orchestrator.errors import UsageError

BUILD = "def build(tf, params): return len\n"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "user"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "assets").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "mine"


def write(mine: Path, name: str, place: str) -> suites.Workload:
    (mine / f"{name}.py").write_text(f"DATA = {{'images': {place!r}}}\n{BUILD}")
    return suites.read_workload(mine / f"{name}.py", builtin=False)


INSIDE = {"a folder": "data", "a detour": "data/../data", "a link in the folder": "alias"}
OUTSIDE = {
    "a whole path": "{outside}", "one above": "../elsewhere", "the home": "~", "a link": "assets",
    "the folder itself": "", "the folder by its name": ".", "a hidden folder": ".git",
}  # fmt: skip


@pytest.mark.parametrize("place", INSIDE.values(), ids=INSIDE)
def test_data_in_the_folder_need_no_word(mine: Path, place: str):
    (mine / "data").mkdir()
    (mine / "alias").symlink_to("data")
    workload = write(mine, "reads", place)
    assert suites.check_data(workload, mine, {}).data == {"images": mine / "data"}


@pytest.mark.parametrize("place", OUTSIDE.values(), ids=OUTSIDE)
def test_data_outside_of_the_folder_need_the_flag_that_the_error_names(mine: Path, tmp_path: Path, place: str):
    (mine / ".git").mkdir()
    workload = write(mine, "reads", place.format(outside=tmp_path / "elsewhere"))
    there = workload.data["images"]
    with pytest.raises(UsageError) as refused:
        suites.check_data(workload, mine, {})
    assert f"`--data images={there}` allows it, and so does `tfcompare trust {mine}`" in str(refused.value)
    assert "\n" not in str(refused.value)
    allowed = outside.find_allowed(mine, [f"images={there}"])
    assert suites.check_data(workload, mine, allowed).data == {"images": there}


def test_a_flag_replaces_the_place_in_every_workload_with_that_name(mine: Path, tmp_path: Path):
    write(mine, "one", "/data/images")
    write(mine, "two", "../elsewhere")
    (mine / "no_workload.py").write_text("DATA = 3\n")
    assert outside.find_allowed(mine, [f"images={tmp_path}"]) == {
        "tfcompare_data/one/images": tmp_path, "tfcompare_data/two/images": tmp_path,
    }  # fmt: skip
    assert outside.find_allowed(mine, [f"assets={tmp_path}"]) == {"assets": tmp_path}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images", "takes NAME=PATH"),
        ("=/data", "takes NAME=PATH"),
        ("imgs=/", "no DATA in .* has the name 'imgs'"),
        ("images=/absent", "there is no /absent"),
    ],
)
def test_a_flag_that_allows_nothing_is_an_error(mine: Path, text: str, words: str):
    write(mine, "reads", "/data")
    with pytest.raises(UsageError, match=words):
        outside.find_allowed(mine, [text])


def test_trust_is_in_exactly_what_was_shown(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(mine, "reads", "../elsewhere")
    found = outside.find_outside_places(mine)
    assert outside.find_allowed(mine, ()) == {}
    trust.record_trust({mine: trust.Trust(outside={name: str(place) for name, place in found.items()})})
    assert outside.find_allowed(mine, ()) == found
    assert trust.file().stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    write(mine, "reads", "../other")
    assert outside.find_allowed(mine, ()) == {"assets": tmp_path / "elsewhere"}
    monkeypatch.setenv("TFCOMPARE_TRUST", "1")
    assert outside.find_allowed(mine, ()) == outside.find_outside_places(mine)
    monkeypatch.setenv("TFCOMPARE_TRUST", "0")
    assert trust.remove_trust(tmp_path) == [str(mine)]
    assert outside.find_allowed(mine, ()) == {}

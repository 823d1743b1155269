"""What a night measures: a reference that stays, nightlies under the name they are followed by, and what is missing."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand
from orchestrator.errors import UsageError
from orchestrator.nightly import versions
from orchestrator.nightly.versions import ResolvedVersions, Unavailable
from tests.support.heard import Heard
from tests.support.nightly_locks import age, lock

YESTERDAY, TODAY = ((datetime.now(UTC) - timedelta(days=days)).strftime("%Y%m%d") for days in (1, 0))
SILENT = "the index does not answer for tf-nightly (Connection refused)"
OLDER, NEWER = f"2.99.0.dev{YESTERDAY}", f"2.99.0.dev{TODAY}"


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What the index has; two nightlies, both locked here."""
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    lock(OLDER)
    lock(NEWER)
    known = {OLDER: "tf-nightly", NEWER: "tf-nightly"}
    monkeypatch.setattr(lock_on_demand, "nightlies", lambda device: known)
    yield known
    monkeypatch.undo()
    catalog.reread()


def resolved(*names: str, last: dict[str, str] | None = None) -> tuple[ResolvedVersions, list[str]]:
    said: list[str] = []
    return versions.resolve_followed(names, Heard(said), last), said


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def nightlies(device: str) -> dict[str, str]:
        raise UsageError(SILENT)

    monkeypatch.setattr(lock_on_demand, "nightlies", nightlies)


@pytest.mark.parametrize(
    ("names", "versions"),
    [
        (("nightly", "2.13"), ("2.13.0", NEWER)),
        (("2.13", "nightly"), ("2.13.0", NEWER)),
        (("nightly", "2.13", "2.0"), ("2.13.0", NEWER, "2.0.0")),
        (("nightly", "2.12..2.14"), ("2.12.1", "2.13.0", "2.14.1", NEWER)),
        ((OLDER, "2.13", "nightly"), ("2.13.0", OLDER, NEWER)),
    ],
)
def test_the_reference_is_the_first_that_is_pinned_and_stands_first(
    names: Sequence[str], versions: Sequence[str]
) -> None:
    found, _ = resolved(*names)
    assert found.versions == versions
    assert found.names == {NEWER: "nightly"}


def test_only_nightly_is_followed_and_a_dated_one_is_itself() -> None:
    found, _ = resolved("2.13", f"nightly-{YESTERDAY}")
    assert (found.versions, found.names) == (("2.13.0", OLDER), {})


@pytest.mark.parametrize("names", [("nightly",), ("nightly", f"nightly-{YESTERDAY}"), (OLDER,)])
def test_without_a_release_there_is_nothing_to_measure_against(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=rf"nothing to measure {', '.join(names)} against: .* {','.join(names)},2.13$"):
        resolved(*names)


def test_the_wheel_of_the_night_before_is_told() -> None:
    found, said = resolved("nightly", "2.13", last={"nightly": NEWER})
    assert found.unchanged == ("nightly",)
    assert found.notes == (f"nightly is {NEWER}, the wheel of the night before: nothing new was built",)
    assert said == list(found.notes)


def test_another_wheel_is_no_more_than_named() -> None:
    found, said = resolved("nightly", "2.13", last={"nightly": OLDER})
    assert (found.unchanged, found.notes, said) == ((), (), [f"nightly is {NEWER}"])


def test_a_nightly_that_is_days_old_is_told(index: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    old = (datetime.now(UTC) - timedelta(days=9)).strftime("%Y%m%d")
    index.clear()
    index[lock(f"2.99.0.dev{old}").number] = "tf-nightly"
    found, _ = resolved("nightly", "2.13")
    assert found.notes == (f"2.99.0.dev{old} is 9 days old: the index has no newer nightly for Python 3.11",)


@pytest.mark.parametrize("names", [("nightly", f"nightly-{TODAY}", "2.13"), (f"nightly-{TODAY}", "2.13", "nightly")])
def test_a_day_that_is_tonight_is_measured_once_and_under_the_name_that_is_followed(names: tuple[str, ...]) -> None:
    found, said = resolved(*names)
    assert (found.versions, found.names) == (("2.13.0", NEWER), {NEWER: "nightly"})
    assert [text for text in said if "which is measured already" in text]


@pytest.mark.parametrize("names", [("2.13", "2.13.0"), ("2.13", "2.13", "nightly")])
def test_a_release_named_twice_is_a_mistake(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"version 2\.13\.0 is named twice \(as '2\.13"):
        resolved(*names)


def test_a_name_that_nobody_knows_is_a_mistake_and_no_result_of_a_night() -> None:
    with pytest.raises(UsageError, match=r"unknown version '2\.99'"):
        resolved("nightly", "2.13", "2.99")


@pytest.mark.usefixtures("silent")
def test_without_an_index_the_newest_that_is_locked_here_is_taken_and_that_is_told() -> None:
    found, _ = resolved("nightly", "2.13")
    assert (found.versions, found.names) == (("2.13.0", NEWER), {NEWER: "nightly"})
    assert found.notes == (f"{SILENT}; taking {NEWER} for nightly, which is locked here",)


@pytest.mark.usefixtures("silent")
def test_without_an_index_a_day_is_that_day_or_nothing() -> None:
    found, _ = resolved("2.13", f"nightly-{YESTERDAY}", "nightly-20200101")
    assert found.versions == ("2.13.0", OLDER)
    reason = f"lock: {SILENT}, and no nightly-20200101 is locked here"
    assert found.unavailable == (Unavailable(name="nightly-20200101", reason=reason),)


@pytest.mark.usefixtures("silent")
def test_what_is_locked_by_its_number_needs_no_index() -> None:
    assert resolved("2.13", NEWER) == (ResolvedVersions(versions=("2.13.0", NEWER), names={}), [])


def test_an_index_without_nightlies_for_this_python_costs_the_nightly_only(index: dict[str, str]) -> None:
    index.clear()
    found, said = resolved("nightly", "2.13", "2.0")
    assert found.versions == ("2.13.0", "2.0.0")
    [missing] = found.unavailable
    assert missing.name == "nightly"
    assert missing.reason == "lock: nightly: the index has no nightly for the newest release's Python"
    assert said == [f"nightly is not available tonight: {missing.reason.removeprefix('lock: ')}"]


def test_the_index_is_asked_once_and_only_if_a_name_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        lock_on_demand, "nightlies", lambda device: asked.append("it") or {OLDER: "tf-nightly", NEWER: "tf-nightly"}
    )
    resolved("2.13", "2.0", NEWER)
    assert asked == []
    resolved("2.13", "nightly", f"nightly-{YESTERDAY}")
    assert asked == ["it"]


def test_a_nightly_that_is_asked_for_is_used_from_now_on() -> None:
    [version] = catalog.resolve_versions([NEWER], fewest=1)
    [flavour] = version.flavours
    for name in ("nightly", NEWER):
        age(version, days=9)
        before = flavour.lock.stat().st_mtime
        resolved("2.13", name)
        assert flavour.lock.stat().st_mtime > before + 8 * 86400


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n  x two:\n  |-> Because a==1\n      depends on b", "one x two: |-> Because a==1 depends on b"),
        ("  \u00d7 No solution\n  \u2570\u2500\u25b6 Because", "No solution Because"),
        ("Failed to fetch: http://me:pass@host/simple/", "Failed to fetch: http://host/simple/"),
        ("x" * 500, "x" * 397 + "..."),
    ],
)
def test_a_reason_is_one_line_without_frames_or_logins(text: str, line: str) -> None:
    assert versions.in_one_line(text) == line

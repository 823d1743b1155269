"""An image is current while its recipe is; what differs is told, and a base of one's own is no mystery."""

from dataclasses import replace

import pytest

from orchestrator.catalog import user_data
from orchestrator.engines.docker.image import ABOVE, BASE_DIGEST, BASE_ID, BASE_NAME, TARGET
from orchestrator.images import report
from orchestrator.images.inventory import find_entry, judge_image, judge_images
from orchestrator.terminal.text import render_plain
from tests.unit.images.scenes import BASE, flavour, judged, kept, recipe, version

KEY = ("1.14.0", "cpu", "3.7")
NOW = recipe()
VERSIONS = [version("1.14.0"), version("2.13.0")]


def state(image, wanted=NOW):
    found = judge_image(image, {KEY: wanted}, ["1.14.0"])
    return found.state, found.why


def test_an_image_of_the_recipe_of_now_under_its_name_is_current():
    assert state(kept(NOW)) == ("current", "")
    assert state(kept(NOW, "mine:1", NOW.tag)) == ("current", "")


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (recipe(spec="b" * 64, lock="other"), "its lock has changed"),
        (recipe(spec="b" * 64), "its recipe has changed"),
        (recipe(spec="b" * 64, **{BASE_DIGEST: "sha256:2"}), "its base has changed"),
        (recipe(spec="b" * 64, **{BASE_ID: "sha256:2"}), "its base has changed"),
        (recipe(spec="b" * 64, base="mine:3.7"), f"built on mine:3.7; the requested base is {BASE}"),
    ],
)
def test_an_image_of_an_older_recipe_is_stale_and_says_what_changed(then, why):
    assert state(kept(then)) == ("stale", why)


def test_an_image_that_lost_its_name_is_found_by_no_run():
    assert state(kept(NOW, "mine:1")) == ("stale", f"it is no longer named {NOW.tag}")


def test_a_version_that_no_table_has_is_unknown():
    assert state(kept(recipe("9.9.9"))) == ("unknown version", "the table of versions has no 9.9.9")


def test_a_python_that_the_table_no_longer_has_is_stale():
    image = kept(recipe(**{"tfcompare.python": "3.5"}))
    assert state(image) == ("stale", "the table has no cpu flavour of it for Python 3.5")


TARGETS = "1.14.0-cpu-py3.7-0123456789ab"


@pytest.fixture
def locked(tmp_path, monkeypatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    user_data.locks().mkdir(parents=True)
    (user_data.locks() / f"{TARGETS}.txt").write_text("numpy==1.0\n")
    return user_data.locks()


def of_target(lock=TARGETS, above="a" * 64):
    return kept(recipe(spec="b" * 64, lock="other", **{TARGET: lock, ABOVE: above}))


def test_the_image_of_a_target_is_wanted_while_its_lock_and_what_is_below_it_are(locked):
    assert state(of_target()) == ("of a target", f"lock {TARGETS}")
    assert state(of_target(above="")) == ("of a target", f"lock {TARGETS}")
    assert state(of_target(above="c" * 64)) == ("stale", "the image of its version has changed")
    assert judge_image(of_target(), {}, []).state == "stale", "its version is in no table any more"
    elsewhere = replace(of_target(), labels={**of_target().labels, BASE_NAME: "mine:3.7"})
    assert state(elsewhere) == ("stale", f"built on mine:3.7; the requested base is {BASE}")
    assert judge_image(elsewhere, {KEY: NOW}, ["1.14.0"]).other_base == "mine:{python}"
    (locked / f"{TARGETS}.txt").unlink()
    assert state(of_target()) == ("stale", f"the lock {TARGETS} of its target is gone")


@pytest.mark.parametrize("lock", ["../locks/" + TARGETS + "x", "x" * 9999, "\0", "..", "/etc/passwd"])
def test_a_foreign_name_of_a_lock_leads_nowhere(locked, lock):
    assert state(of_target(lock))[0] == "stale"


def test_images_come_in_the_order_of_the_table_and_what_is_missing_is_told():
    other = recipe("2.13.0", spec="c" * 64, **{"tfcompare.python": "3.11"})
    images = [kept(recipe("9.9.9")), kept(other, id="sha256:2"), kept(NOW), kept(recipe(spec="d" * 64))]
    found = judge_images(images, {KEY: NOW}, VERSIONS)
    assert [(one.image.version, one.state) for one in found.images] == [
        ("1.14.0", "current"), ("1.14.0", "stale"), ("2.13.0", "stale"), ("9.9.9", "unknown version"),
    ]  # fmt: skip
    assert [(one.number, option.name) for one, option in found.missing] == [
        ("1.14.0", "gpu"), ("2.13.0", "cpu"), ("2.13.0", "gpu"),
    ]  # fmt: skip
    assert [one.image.version for one in found.current()] == ["1.14.0"]
    assert found.current([version("2.13.0")]) == ()


def test_a_version_with_a_current_image_for_its_second_python_is_not_missing():
    second = recipe(**{"tfcompare.python": "3.6"})
    found = judge_images([kept(second)], {("1.14.0", "cpu", "3.6"): second}, VERSIONS[:1])
    assert [option.name for _, option in found.missing] == ["gpu"]


def test_the_base_of_ones_own_is_named_as_the_flag_takes_it():
    assert judged("stale").other_base is None
    image = kept(recipe(base="localhost:5000/base:3.7"))
    assert replace(judged("stale"), image=image).other_base == "localhost:5000/base:{python}"


def test_an_image_leads_back_to_its_place_in_the_table():
    assert find_entry(judged("current"), VERSIONS) == (version("1.14.0"), flavour(python="3.7"))


def test_the_table_and_the_objects_tell_the_same():
    found = judge_images([kept(NOW), kept(recipe(spec="b" * 64, lock="other"))], {KEY: NOW}, VERSIONS)
    [first, second, *missing] = report.objects(found, missing=True)
    assert (first["state"], second["state"], second["why"]) == ("current", "stale", "its lock has changed")
    assert (first["tag"], first["size"], first["created"]) == (NOW.tag, 10**9, "2026-01-02T03:04:00+00:00")
    assert {entry["state"] for entry in missing} == {"not built"}
    assert len(report.objects(found, missing=False)) == 2
    text = render_plain(lambda width: report.of_images(found, missing=True))
    assert "1.0 GB" in text
    assert "not built" in text
    assert render_plain(lambda width: report.of_images(judge_images([], {}, VERSIONS), missing=False)) == (
        "no tfcompare images found"
    )

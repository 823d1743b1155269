"""What nobody wants goes, and what somebody may want stays, with the reason."""

from dataclasses import replace

import pytest

from orchestrator.engines.docker import image, nvidia
from orchestrator.images import report, sizes
from orchestrator.images.prune import Garbage, KeptItem, find_orphaned_code, part
from orchestrator.terminal.text import render_plain
from tests.unit.images.scenes import judged, kept, recipe

OLD = judged("stale", id="sha256:old")
NEW = judged("current", id="sha256:new")
UNKNOWN = judged("unknown version", id="sha256:unknown")
TARGETS = judged("of a target", id="sha256:target")


def user(image: str, state: str) -> dict[str, object]:
    return {"Id": "0123456789abcdef", "ImageID": image, "State": state, "Names": ["/busy"]}


def test_what_no_recipe_leads_to_goes_and_what_is_current_stays():
    assert part([NEW, OLD, UNKNOWN], [], None, all=False) == ((OLD, UNKNOWN), ())
    assert part([NEW, OLD, UNKNOWN], [], None, all=True) == ((NEW, OLD, UNKNOWN), ())


def test_the_image_of_a_target_stays_until_all_go():
    assert part([TARGETS], [], None, all=False) == ((), ())
    assert part([TARGETS], [], None, all=True) == ((TARGETS,), ())


@pytest.mark.parametrize("state", ["running", "exited"])
def test_an_image_that_a_container_uses_is_left_alone_and_that_is_said(state: str):
    taken, [spared] = part([OLD, NEW], [user("sha256:old", state)], None, all=False)
    told = "running" if state == "running" else "stopped"
    assert taken == ()
    assert spared == KeptItem(name=OLD.image.name, why=f"the {told} container busy uses it")


def test_a_current_image_in_use_is_not_mentioned_where_nobody_would_take_it():
    assert part([NEW], [user("sha256:new", "running")], None, all=False) == ((), ())


def test_an_image_that_somebody_has_named_is_left_alone():
    named = judged("stale", recipe(), recipe().tag, "mine:1")
    assert part([named], [], None, all=True)[1] == (KeptItem(name=recipe().tag, why="it is named mine:1 too"),)


def test_images_on_another_base_go_only_where_one_is_named_or_all_do():
    other = replace(OLD, image=kept(recipe(base="mine:3.7", spec="b" * 64)))
    taken, [spared] = part([other], [], None, all=False)
    assert taken == ()
    assert "it was built with --base 'mine:{python}'" in spared.why
    assert part([other], [], "python:{python}-slim", all=False) == ((other,), ())
    assert part([other], [], None, all=True) == ((other,), ())


def test_images_of_other_users_go_only_where_all_do():
    mine, theirs = (
        replace(one, image=replace(one.image, labels={**one.image.labels, image.BUILDER: name}))
        for one, name in ((OLD, image.builder()), (UNKNOWN, "4711-0123456789ab"))
    )
    taken, [spared] = part([mine, theirs], [], None, all=False)
    assert taken == (mine,)
    assert spared == KeptItem(name=theirs.image.name, why="another user or installation built it; take --all")
    assert part([mine, theirs], [], None, all=True) == ((mine, theirs), ())
    assert part([mine, theirs], [], None, all=True, others=False)[0] == (mine,), "the images of old nightlies"


def test_a_builder_is_a_user_and_a_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    one = image.builder()
    assert str(tmp_path) not in one
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "link"))
    assert image.builder() == one
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "other"))
    assert image.builder() != one


def test_what_images_share_is_counted_once():
    base, one, two = (1, "FROM", 100), (2, "RUN one", 10), (3, "RUN two", 5)
    assert sizes.add_up([base, one, base, two]) == 115
    assert [sizes.format_size(size) for size in (5, 1500, 2_500_000, 1_234_000_000)] == [
        "5 B",
        "1.5 kB",
        "2.5 MB",
        "1.2 GB",
    ]


def test_the_table_tells_what_goes_and_what_stays():
    garbage = Garbage(
        images=(replace(OLD, why="its lock has changed"),),
        images_bytes=10**9,
        containers=("a", "b"),
        spared=(KeptItem(name="tfcompare:x", why="the running container busy uses it"),),
    )
    text = render_plain(lambda width: report.of_garbage(garbage))
    assert garbage
    assert "its lock has changed" in text
    assert "2 containers" in text
    assert "left alone: tfcompare:x: the running container busy uses it" in text
    assert "frees about 1.0 GB" in text
    nothing = replace(garbage, images=(), containers=())
    assert not nothing
    assert render_plain(lambda width: report.of_garbage(nothing)) == (
        "left alone: tfcompare:x: the running container busy uses it"
    )


def test_code_that_a_driver_made_goes_with_the_last_image_that_it_was_made_for(tmp_path):
    made = [nvidia.CompiledCode(tmp_path / f"{image}-GPU-1", image, 7) for image in ("0123456789ab", "ba9876543210")]
    staying = {"sha256:0123456789ab" + "0" * 52}
    assert find_orphaned_code(made, staying) == ((tmp_path / "ba9876543210-GPU-1", 7),)
    garbage = Garbage(
        images=(),
        images_bytes=0,
        containers=(),
        spared=(),
        driver_code=find_orphaned_code(made, staying),
    )
    assert garbage
    assert garbage.frees == 7
    assert "driver's code ba9876543210-GPU-1" in render_plain(lambda width: report.of_garbage(garbage))

"""An archive's labels are compared with the recipes here before the engine gets anything of it."""

import json
from typing import Any

import pytest
from docker.errors import ImageNotFound
from docker.models.images import Image

from orchestrator.catalog import user_data
from orchestrator.engines.docker import image
from orchestrator.engines.docker.image import BASE_DIGEST, BASE_ID, BASE_NAME, SPEC_LABEL, TARGET, Recipe
from orchestrator.images.archive import ArchivedImage, describe_content
from orchestrator.images.load import LoadableImage, examine_archive
from tests.unit.images.scenes import flavour, version

DIGEST = "sha256:" + "1" * 64
OWN = "own/python:{python}"


class Engine:
    """An engine with these images by their names, which is asked for nothing else."""

    def __init__(self, **images: dict[str, Any]) -> None:
        self.named = images
        self.api = self

    @property
    def images(self) -> Any:
        return self

    def get(self, name: str) -> Image:
        if name not in self.named:
            raise ImageNotFound(name)
        return Image(self.named[name])

    def __call__(self, **filters: object) -> list[dict[str, Any]]:
        return []


def recipe(base: str | None = None, base_id: str = "", number: str = "1.14.0") -> Recipe:
    engine: Any = Engine()
    return image.recipe(engine, version(number), flavour(number, python="3.7"), base, base_id)


def packed(made: Recipe, **changes: str) -> ArchivedImage:
    labels = {**made.labels, **changes}
    content = describe_content(["sha256:1"], {"Labels": labels})
    return ArchivedImage(tag=made.tag, labels=labels, config=json.dumps(labels).encode(), content=content, layers=())


def here(candidate: ArchivedImage, *diff_ids: str) -> dict[str, Any]:
    return {"Id": "sha256:9", "RootFS": {"Layers": list(diff_ids)}, "Config": {"Labels": candidate.labels}}


def examined(
    *given: ArchivedImage,
    base: str | None = None,
    replace: bool = False,
    lock_bases: bool = False,
    **images: dict[str, Any],
) -> tuple[list[LoadableImage], list[str]]:
    engine: Any = Engine(**images)
    numbers = [version(number) for number in ("1.14.0", "2.0.0")]
    return examine_archive(engine, given, numbers, base, replace=replace, lock_bases=lock_bases)


def test_an_image_of_a_current_recipe_is_loaded():
    made = packed(recipe())
    [candidate], problems = examined(made)
    assert (candidate.packed, candidate.here, candidate.is_here, candidate.lacks_digest, problems) == (
        made, "", False, False, [],
    )  # fmt: skip


def test_the_same_image_is_already_here_and_another_one_stays_unless_it_is_replaced():
    made = packed(recipe())
    [candidate], _ = examined(made, **{made.tag: here(made, "sha256:1")})
    assert (candidate.here, candidate.is_here) == ("sha256:9", True)
    other = {made.tag: here(made, "sha256:2")}
    candidates, problems = examined(made, **other)
    assert candidates == []
    assert problems == [
        f"{made.tag}: not loaded: an image with this name and other content is here; --replace replaces it"
    ]
    [candidate], problems = examined(made, replace=True, **other)
    assert (candidate.here, candidate.is_here, problems) == ("sha256:9", False, [])


ODD = {
    "a target": ({TARGET: "lock"}, "an image of a target is built where it is used"),
    "an unknown version": ({"tfcompare.version": "1.14.9"}, "no run here would use it: the table of versions has no"),
    "an unknown Python": ({"tfcompare.python": "3.5"}, "no run here would use it: the table has no cpu flavour"),
    "another recipe": ({SPEC_LABEL: "b" * 64}, "no run here would use it: its recipe has changed"),
    "another lock": ({SPEC_LABEL: "b" * 64, "tfcompare.lock": "c"}, "no run here would use it: its lock has changed"),
    "another lock under this recipe": ({"tfcompare.lock": "c"}, "its label tfcompare.lock is not that of its recipe"),
    "an id of a base that has a digest": ({BASE_ID: "sha256:5"}, f"its label {BASE_ID} is not that of its recipe"),
}


@pytest.mark.parametrize(("changes", "words"), ODD.values(), ids=ODD)
def test_an_image_whose_labels_are_not_those_of_a_recipe_is_left_out_and_the_next_one_is_not(
    changes: dict[str, str], words: str
):
    for flags in ({}, {"replace": True, "lock_bases": True}):
        [candidate], [problem] = examined(packed(recipe(), **changes), packed(recipe(number="2.0.0")), **flags)
        assert problem.startswith("tfcompare:1.14.0-cpu-")
        assert f": not loaded: {words}" in problem
        assert candidate.packed.labels["tfcompare.version"] == "2.0.0"


def test_a_local_base_that_is_not_here_has_the_id_that_the_image_says():
    made = packed(recipe(OWN, "sha256:5"))
    for base, other in ((OWN, None), (None, OWN)):
        [candidate], problems = examined(made, base=base)
        assert (candidate.other_base, problems) == (other, [])
    _, [problem] = examined(made, base="mirror/python:{python}")
    assert "no run here would use it: built on own/python:3.7; the requested base is mirror/python:3.7" in problem
    _, [problem] = examined(made, base=OWN, **{"own/python:3.7": {"Id": "sha256:6"}})
    assert "no run here would use it: its base has changed" in problem


def test_two_images_on_two_bases_of_one_name_do_not_go_together():
    first, second = packed(recipe(OWN, "sha256:5")), packed(recipe(OWN, "sha256:6", "2.0.0"))
    [candidate], [problem] = examined(first, second, base=OWN)
    assert candidate.packed == first
    assert problem.endswith("it is built on another own/python:3.7 than an image before it in the archive")


def test_a_digest_that_only_the_archive_knows_counts_if_the_user_asks_for_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    made = packed(recipe(f"own/python:3.7@{DIGEST}"))
    assert (made.labels[BASE_NAME], made.labels[BASE_DIGEST]) == ("own/python:3.7", DIGEST)
    for base in (OWN, None):
        candidates, [problem] = examined(made, base=base)
        assert candidates == []
        assert f"it is built on own/python:3.7 with the digest {DIGEST}, and here that base has none" in problem
        [candidate], problems = examined(made, base=base, lock_bases=True)
        assert (candidate.lacks_digest, problems) == (True, [])
    user_data.write_digests({"own/python:3.7": DIGEST})
    [candidate], _ = examined(made, base=OWN)
    assert not candidate.lacks_digest
    user_data.write_digests({"own/python:3.7": DIGEST.replace("1", "2")})
    _, [problem] = examined(made, base=OWN, lock_bases=True)
    assert "no run here would use it: its base has changed" in problem

"""Which bases are asked for, what an answer means, and what is said when there is none."""

from dataclasses import replace

import pytest

from orchestrator.images import report
from orchestrator.images.lock import Answer, bases, why
from orchestrator.terminal.text import render_plain
from tests.unit.images.scenes import version

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
BASE = "tensorflow/tensorflow:2.0.0-gpu-py3"


def answer(known: str, digest: str, wrong: str = "", image: str = BASE) -> Answer:
    return Answer(image=image, digest=digest, known=known, versions=("1.0.0",), wrong=wrong)


def test_each_base_is_asked_for_once_for_all_its_versions():
    chosen = [version(number) for number in ("1.14.0", "2.0.0", "2.13.0")]
    [first, second] = bases(chosen, "cpu", None, {})
    assert (first.image, first.versions) == ("python:3.7-slim", ("1.14.0", "2.0.0"))
    assert first.known == chosen[0].on("cpu")[0].digest
    assert second.versions == ("2.13.0",)
    assert [one.image for one in bases(chosen[1:2], "gpu", None, {})] == [BASE]
    [build] = bases([version("2.17.0+nv25.02")], "gpu", None, {})
    assert (build.image, build.versions) == ("nvcr.io/nvidia/tensorflow:25.02-tf2-py3", ("2.17.0+nv25.02",))
    assert build.known.startswith("sha256:c83b37d2")


def test_a_base_of_ones_own_has_only_the_digest_that_was_locked_before():
    chosen = [version("1.14.0"), version("2.13.0")]
    [first, second] = bases(chosen, "cpu", "mirror:5000/python:{python}", {"mirror:5000/python:3.11": ONE})
    assert (first.image, first.known) == ("mirror:5000/python:3.7", "")
    assert (second.image, second.known) == ("mirror:5000/python:3.11", ONE)


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (answer("", ONE), "new"),
        (answer(ONE, ONE), "unchanged"),
        (answer(ONE, TWO), "CHANGED"),
        (answer(ONE, "", "no such tag"), "failed"),
        (answer("", ONE, image=f"{BASE}@{ONE}"), "pinned"),
    ],
)
def test_an_answer_is_new_or_as_known_or_loudly_another(one: Answer, state: str):
    assert one.state == state
    assert one.as_object()["state"] == state
    text = render_plain(lambda width: report.of_answers([one, replace(one, wrong="")]))
    assert state in text


# What engines of several ages say.
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("manifest unknown: manifest unknown", "is not in the registry"),
        ("manifest for x:1 not found: manifest unknown", "is not in the registry"),
        ("errors:\nname unknown: repository name not known to registry", "is not in the registry"),
        ('Get "http://mirror:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused', "was not reached"),
        ('Get "https://mirror/v2/": x509: certificate signed by unknown authority', "does not trust the certificate"),
        ("dial tcp: lookup mirror: no such host", "its name cannot be resolved"),
        ("unauthorized: authentication required", "without a login"),
        ("denied: requested access to the resource is denied", "log in with `docker login`"),
        ("invalid reference format", "returned no digest (invalid reference format)"),
    ],
)
def test_what_failed_is_told_apart_with_the_image_and_what_was_said(said: str, told: str):
    line = why("mirror:5000/python:3.7", said)
    assert told in line
    assert "mirror:5000/python:3.7" in line
    assert " ".join(said.split()) in line

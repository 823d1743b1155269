"""Keras. From 2.16 on, its releases are separate, and one TensorFlow can have any of several."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from packaging.version import InvalidVersion, Version

from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.changed import KERAS_3
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End, pin_package, unpin_package

KERAS = "keras"


def find_changed_keras(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    before, after = (_find_installed(end) for end in (old, new))
    if new.is_image or not after or before == after:
        return
    title = f"Keras {before or 'of TensorFlow'} -> {after}"
    release = partial(Cause, title=title, package=KERAS, numbers=(before, after))
    if new.changed.keras_2:
        if _is_3(before):
            yield Cause(title=title, undo=lambda changed: pin_package(replace(changed, keras_2=False), KERAS, before))
    elif _is_3(before):
        yield release(undo=partial(pin_package, package=KERAS, number=before))
    elif _is_3(after) and _can_have_2(new.changed):
        yield Cause(title=title, undo=lambda changed: replace(unpin_package(changed, KERAS), keras_2=True))
    elif old.tensorflow == new.tensorflow:
        yield release(undo=partial(pin_package, package=KERAS, number=before))


def _find_installed(end: End) -> str:
    """Return the version of the package that provides `tf.keras`, or '' if no separate package does."""
    return end.packages.get("tf-keras" if end.changed.keras_2 else KERAS, "")


def _is_3(number: str) -> bool:
    try:
        return Version(number) >= Version("3.0.0")
    except InvalidVersion:
        return False


def _can_have_2(changed: Changed) -> bool:
    return bool(changed.version) and read_number_pair(changed.version) >= KERAS_3

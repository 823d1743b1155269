"""The packages next to TensorFlow and Keras: a release of each, or a wheel of the user's."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from orchestrator.catalog.changed import WRITER
from orchestrator.catalog.targets import TENSORFLOWS, Changed, name_pinned
from orchestrator.catalog.version import FlavourName
from orchestrator.catalog.wheel import read_package
from orchestrator.why.cause import Cause, End, pin_package, unpin_package

# A release of TensorFlow brings its own release of these, so they cannot be separated from it. Keras is another kind
# of cause, and pip takes no part in a call.
TIED = TENSORFLOWS | {
    "keras", "keras-nightly", "tf-keras", "tensorboard", "tensorboard-data-server", "tensorboard-plugin-wit",
    "tensorflow-estimator", "tf-estimator-nightly", "tensorflow-io-gcs-filesystem", "pip", "setuptools", "wheel",
}  # fmt: skip


def find_changed_packages(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    if new.is_image:
        return
    before, after = old.changed.package, new.changed.package
    wheels = {read_package(path).name for path in (before, after) if path}
    if before != after:
        shown = [path.name if path else "from the index" for path in (before, after)]
        yield Cause(title=f"{', '.join(sorted(wheels))} {' -> '.join(shown)}", undo=partial(_take_wheel, old.changed))
    pinned = {name_pinned(each) for end in (old, new) for each in end.changed.pins}
    for name, number in new.packages.items():
        was = old.packages.get(name)
        if was == number or name in wheels or name in TIED or (name == WRITER and name not in pinned):
            continue
        if was:
            title = f"{name} {was} -> {number}"
            yield Cause(
                title=title, undo=partial(pin_package, package=name, number=was), package=name, numbers=(was, number)
            )
        elif name in pinned:
            yield Cause(title=f"{name} none -> {number}", undo=partial(unpin_package, package=name))


def _take_wheel(old: Changed, changed: Changed) -> Changed:
    return replace(changed, package=old.package)

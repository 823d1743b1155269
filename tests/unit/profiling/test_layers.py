"""Which layer is the first that returns something else, and from what."""

from typing import Any

import numpy as np
import pytest

from orchestrator.model.profile import LayerOutput
from orchestrator.profiling.layers import find_first_differing
from workloads.sketches import sketch

VALUES = np.random.RandomState(1).rand(4, 3).astype("float32")
OTHER = VALUES * np.float32(1.01)


def layer(name: str, output: Any = VALUES, weights: Any = (VALUES,), kind: str = "Dense") -> LayerOutput:
    of_weights = None if weights is None else sketch(list(weights))
    return LayerOutput(name=name, type=kind, output=sketch(output), weights=of_weights)


NET = (layer("a"), layer("b"), layer("net", kind="Model"))


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (NET, "all 3 layers return the same within tolerance; what differs comes after them"),
        # The name is another one for each that was made before.
        ((layer("a_1"), *NET[1:]), "all 3 layers return the same"),
        (
            (NET[0], layer("b", OTHER), layer("net", OTHER, kind="Model")),
            "the first layer whose output differs is b (Dense), layer 2 of 3: by 0.99%, from equal weights",
        ),
        ((layer("a", OTHER, (OTHER,)), *NET[1:]), "layer 1 of 3: by 0.99%, from different weights"),
        ((layer("a", OTHER, None), *NET[1:]), "by 0.99%, its weights are not known"),
        ((layer("a", VALUES[:2]), *NET[1:]), "layer 1 of 3: (float32[2,3], not float32[4,3]), from equal weights"),
        (
            (NET[0], layer("b", kind="Dropout"), NET[2]),
            "different layers are called: b (Dropout), layer 2 of 3, in place of b",
        ),
        (NET[:2], "different layers are called: 2 in place of 3"),
        ((LayerOutput(name="a", type="Dense", output="{"), *NET[1:]), "its sketch cannot be read"),
    ],
)
def test_the_first_layer_that_differs_is_named(candidate: tuple[LayerOutput, ...], told: str):
    assert told in find_first_differing(NET, candidate)

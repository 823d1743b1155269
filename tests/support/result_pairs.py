"""Pairs of results of which it is known whether they differ, with the values at random places."""

from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = 100_000
Draw = Callable[[np.random.RandomState], tuple[Any, Any]]


def change(count: int, size: float = 3.0) -> Draw:
    def draw(random: np.random.RandomState) -> tuple[Any, Any]:
        old = random.randn(VALUES).astype("float32")
        new = old.copy()
        new[random.choice(VALUES, count, replace=False)] += size
        return old, new

    return draw


def shuffle(random: np.random.RandomState) -> tuple[Any, Any]:
    batch = random.randn(100, 1000).astype("float32")
    return batch, batch[random.permutation(100)]


def permute(random: np.random.RandomState) -> tuple[Any, Any]:
    images = random.randn(4, 50, 50, 10).astype("float32")
    return images, np.ascontiguousarray(images.transpose(0, 2, 1, 3))


def swap(random: np.random.RandomState) -> tuple[Any, Any]:
    old = random.randn(VALUES).astype("float32")
    new = old.copy()
    # Far enough apart, for two values may happen to be equal.
    one, other = random.choice(np.flatnonzero(old > 1)), random.choice(np.flatnonzero(old < -1))
    new[one], new[other] = old[other], old[one]
    return old, new


def mask(size: float, share: float) -> Draw:
    def draw(random: np.random.RandomState) -> tuple[Any, Any]:
        scores = [random.randn(64, 1000).astype("float32") for _ in range(2)]
        for each in scores:
            each[:, int(1000 * (1 - share)) :] = size
        return scores[0], scores[1]

    return draw


def below_a_mask(random: np.random.RandomState) -> tuple[Any, Any]:
    old = random.randn(64, 1000).astype("float32")
    old[:, 700:] = -1e9
    new = old.copy()
    new[random.randint(64), random.randint(700)] += 3
    return old, new


def change_a_late_part(random: np.random.RandomState) -> tuple[Any, Any]:
    old = [random.randn(50, 20).astype("float32") for _ in range(40)]
    new = [part.copy() for part in old]
    new[random.randint(16, 40)][random.randint(50), random.randint(20)] += 3
    return old, new


def move_nan(random: np.random.RandomState) -> tuple[Any, Any]:
    old = random.randn(VALUES).astype("float32")
    new = old.copy()
    one, other = random.choice(VALUES, 2, replace=False)
    old[one] = new[other] = np.nan
    return old, new


def turn_huge(random: np.random.RandomState) -> tuple[Any, Any]:
    old = random.randn(VALUES) * 1e307
    new = old.copy()
    new[random.choice(np.flatnonzero(abs(old) > 1e307))] *= -1
    return old, new


def change_one_that_is_not_zero(random: np.random.RandomState) -> tuple[Any, Any]:
    old = random.randn(VALUES) * (random.rand(VALUES) < 0.001)
    new = old.copy()
    new[random.choice(np.flatnonzero(old))] *= 3
    return old, new


DIFFERENCES = {
    "one value": change(1),
    "a hundredth of one value": change(1, 0.01),
    "100 values": change(100),
    "all values": change(VALUES),
    "a shuffled batch": shuffle,
    "permuted axes": permute,
    "two values changed places": swap,
    "a mask of -1e9": mask(-1e9, 0.3),
    "a mask over most": mask(-1e9, 0.8),
    "a mask of -1e4": mask(-1e4, 0.5),
    "the lowest float as a mask": mask(float(np.finfo("float32").min), 0.3),
    "one value below a mask": below_a_mask,
    "one value of a late part": change_a_late_part,
    "NaN in another place": move_nan,
    "the sign of a huge value": turn_huge,
    "one of few that are not zero": change_one_that_is_not_zero,
}


def add_in_another_order(random: np.random.RandomState) -> tuple[Any, Any]:
    left, right = (random.randn(300, 300).astype("float32") for _ in range(2))
    order = random.permutation(300)
    return left @ right, np.ascontiguousarray(left[:, order]) @ np.ascontiguousarray(right[order])


def scatter(make: Callable[[np.random.RandomState], Any]) -> Draw:
    def draw(random: np.random.RandomState) -> tuple[Any, Any]:
        old = make(random)
        noise, sizes = 1e-6 * random.randn(*old.shape), np.abs(old)
        # Of each value, and of the typical one, as where large values cancel out. A mask is not typical, if it is most
        # of a result, too.
        typical = np.median(sizes[sizes < sizes.max()])
        return old, (old * (1 + noise) + 1e-6 * typical * random.randn(*old.shape)).astype(old.dtype)

    return draw


def masked(random: np.random.RandomState) -> Any:
    return np.where(random.rand(300, 300) < 0.5, np.float32(-1e9), random.randn(300, 300).astype("float32"))


NOISE = {
    "sums in another order": add_in_another_order,
    "of normal values": scatter(lambda random: random.randn(VALUES).astype("float32")),
    "of values of all sizes": scatter(lambda random: np.exp(4 * random.randn(VALUES)).astype("float32")),
    "of outliers": scatter(lambda random: random.standard_cauchy(VALUES).astype("float32")),
    "below a mask": scatter(masked),
    "at the edges of bands": scatter(lambda random: (16.0 ** random.randint(-3, 4, VALUES)).astype("float32")),
    "of a few values": scatter(lambda random: random.randn(7).astype("float32")),
    "of two sizes": scatter(lambda random: np.where(random.rand(VALUES) < 0.52, 1e-3, 1.0).astype("float32")),
    "in float16": lambda random: (lambda old: (old.astype("float16"), (old * (1 + 1e-4)).astype("float16")))(
        random.randn(VALUES)
    ),
}

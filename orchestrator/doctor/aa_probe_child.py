"""The process that the probe times: it reads a number of calls, makes them, and answers with a line of nanoseconds.

It is run by path, without the working directory on its import path, because that may contain a `numpy.py`.
"""

import sys
import time

import numpy as np

BATCH, CHANNELS = 32, 30
LAYERS = 4
STEPS = 80
WARMUP_CALLS = 5


class Model:
    """A small dense network that is run layer by layer, as eager TensorFlow does.

    A call runs a lot of bytecode and many small operations. The weights stay the same, so that every call does the same
    work.
    """

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        self.inputs = draw.normal(size=(BATCH, CHANNELS))
        self.targets = draw.normal(size=(BATCH, CHANNELS))
        self.weights = {f"dense_{layer}": draw.normal(size=(CHANNELS, CHANNELS)) / 6 for layer in range(LAYERS)}

    def call(self) -> None:
        for _ in range(STEPS):
            self._step()

    def _step(self) -> dict[str, float]:
        seen = [self.inputs]
        for weight in self.weights.values():
            seen.append(np.maximum(seen[-1] @ weight, 0.0))
        error = (seen[-1] - self.targets) / BATCH
        norms = {}
        for name, before, after in zip(reversed(self.weights), reversed(seen[:-1]), reversed(seen[1:]), strict=True):
            error = error * (after > 0)
            gradient = before.T @ error
            error = error @ self.weights[name].T
            norms[f"{name}/{gradient.shape}"] = sum(abs(value) for value in gradient[0].tolist())
        return norms


def main() -> None:
    model = Model()
    for _ in range(WARMUP_CALLS):
        model.call()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begun = time.perf_counter_ns()
            model.call()
            times.append(time.perf_counter_ns() - begun)
        print(*times, flush=True)


if __name__ == "__main__":
    main()

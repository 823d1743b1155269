"""Workloads whose results differ where a sample of the first call does not show it; `new` says which one is returned.

Each is the rest of a `build`, to which `numpy` and a generator `draw` are known.
"""

from textwrap import dedent, indent

BODIES = {
    "most_classes": """
        x = draw.randn(32, 1000).astype("float32")
        if new:
            flat = x.ravel().copy()
            rest = numpy.setdiff1d(numpy.arange(flat.size), numpy.linspace(0, flat.size - 1, 256).astype(int))
            flat[rest] = flat[draw.permutation(rest)]
            x = flat.reshape(x.shape)
        return lambda: x
    """,
    "one_logit": """
        x = draw.randn(32, 1000).astype("float32")
        x[3, 8] += 3 * new
        return lambda: x
    """,
    "late_arrays": """
        parts = [draw.randn(4, 4).astype("float32") for _ in range(20)]
        parts[16:] = [part * (100 if new else 1) for part in parts[16:]]
        return lambda: parts
    """,
    "masked": """
        x = numpy.random.RandomState(new).randn(8, 128).astype("float32")
        x[:, 100:] = -1e9
        return lambda: x
    """,
    "wrong_direction": """
        x, y, weights = draw.randn(512, 64), draw.randn(512), numpy.zeros(64)
        def train_on_batch():
            error = x.dot(weights) - y
            weights[:] -= (-0.01 if new else 0.01) * x.T.dot(error) / len(y)
            return float(numpy.mean(error ** 2))
        return train_on_batch
    """,
    # The same array each time, which later calls overwrite.
    "weights_in_place": """
        weights = numpy.zeros((30, 40))
        def step():
            weights[:] += -1.0 if new else 1.0
            return weights
        return step
    """,
    "an_object": """
        class Model(object):
            pass
        return lambda: (numpy.float32(1.0), Model())
    """,
    "a_list_in_itself": """
        nest = [1.0]
        nest += [nest, (nest, {"again": nest})]
        return lambda: nest
    """,
    "an_array_in_itself": """
        nest = numpy.array([1.0, None], object)
        nest[1] = nest
        return lambda: nest
    """,
    "a_nest_without_end": """
        nest = 1.0
        for _ in range(10000):
            nest = [nest]
        return lambda: nest
    """,
}
# These return the same in their first call.
FIFTH = ("wrong_direction",)
# These return something that has no value.
WITHOUT_VALUE = ("an_object", "a_list_in_itself", "an_array_in_itself", "a_nest_without_end")


def write(head: str, name: str) -> str:
    """Return the source of a workload whose `build` begins with this."""
    return dedent(head) + indent(dedent(BODIES[name]), "    ")

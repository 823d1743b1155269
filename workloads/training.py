"""What the workloads of whole models share: their sizes, and the step that trains one."""

from workloads import compat

# Enough that setting up `fit` is a small part.
BATCHES = 5


def size_refusal(tf, params):
    """Why a size cannot be measured here, or None: the large one would take a CPU minutes a step."""
    if params["size"] == "gpu" and not compat.count_gpus(tf):
        return "The large size is for a GPU."
    return None


def fit(model, x, y):
    """A call of `fit` on five equal batches, that returns its loss, from the same weights in every version."""
    compat.fix_weights(model, 1)
    count = len(y)
    inputs = [part.repeat(BATCHES, axis=0) for part in (x if isinstance(x, list) else [x])]
    targets = y.repeat(BATCHES, axis=0)

    def call():
        # Each batch holds the rows that are next to each other, so in every version the same.
        given = inputs if isinstance(x, list) else inputs[0]
        trained = model.fit(given, targets, batch_size=count, shuffle=False, verbose=0)
        return trained.history["loss"]

    call.steps, call.items = BATCHES, count
    return call

"""What the workloads of whole models share: their sizes, and the step that trains one."""

from workloads import compat

# The set-up of `fit` is a small part of this many batches.
BATCHES = 5


def size_refusal(tf, params):
    """Return why a size cannot be measured here, or None; the large one would take a CPU minutes per step."""
    if params["size"] == "gpu" and not compat.count_gpus(tf):
        return "The large size is for a GPU."
    return None


def fit(model, x, y):
    """Return a call of `fit` on five equal batches that returns the loss; versions start from the same weights."""
    compat.fix_weights(model, 1)
    count = len(y)
    inputs = [part.repeat(BATCHES, axis=0) for part in (x if isinstance(x, list) else [x])]
    targets = y.repeat(BATCHES, axis=0)

    def call():
        # Each batch holds neighbouring rows, so it is the same in every version.
        given = inputs if isinstance(x, list) else inputs[0]
        trained = model.fit(given, targets, batch_size=count, shuffle=False, verbose=0)
        return trained.history["loss"]

    call.steps, call.items = BATCHES, count
    return call

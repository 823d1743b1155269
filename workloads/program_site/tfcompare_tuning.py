"""Leave the datasets of TensorFlow untuned; stdlib only, Python 3.6 syntax.

While a dataset is read, a thread of TensorFlow tunes it: at once, and then 20, 60, 140, 300, 620 ms later, and so on. At
the end, TensorFlow wakes this thread, and sets the flag that tells it to stop only after that. If the thread looks at
the flag too early, it sleeps until its next turn, and the reader waits for it. So an epoch of `fit` in 2.8 took 340 ms
instead of 205, and computed no more.
"""

HOME = "tensorflow.python.data.ops.dataset_ops"
# Before TensorFlow makes an iterator, it calls a method of the dataset, and uses the dataset that this returns. Versions
# before 2.5 have the second method.
PREPARATIONS = ("_apply_debug_options", "_apply_options")


def leave_untuned(dataset_ops):
    """Switch the tuning off for all datasets of TensorFlow; one whose own options set it, on or off, keeps that."""
    kind = dataset_ops.DatasetV2
    name = next(name for name in PREPARATIONS if hasattr(kind, name))
    prepare = getattr(kind, name)

    def prepare_untuned(dataset):
        inner = dataset._dataset if isinstance(dataset, dataset_ops.DatasetV1Adapter) else dataset
        # In newer versions, `options()` runs an operation.
        given = getattr(inner, "_options_attr", None) or inner.options()
        if getattr(*_find_switch(given)) is None:
            options = type(given)()
            setattr(*_find_switch(options), False)
            dataset = dataset.with_options(options)
        return prepare(dataset)

    setattr(kind, name, prepare_untuned)


def _find_switch(options):
    """Return the object that holds the switch of the tuning, and its name there."""
    if hasattr(options, "autotune"):
        return options.autotune, "enabled"
    # TensorFlow 1.13 has the second name.
    return next(
        (holder, name)
        for holder, name in (
            (getattr(options, "experimental_optimization", None), "autotune"),
            (options, "experimental_autotune"),
        )
        if hasattr(holder, name)
    )

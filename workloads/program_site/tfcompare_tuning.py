"""Leave the datasets of TensorFlow untuned; stdlib only, Python 3.6 syntax.

A thread tunes a dataset while it is read: after 10 ms, and then after twice as long each time. When the reading ends, it
is woken before it can see that it shall end. So it often sleeps until its next turn, and the reader waits for it: an
epoch of `fit` takes 340 ms instead of 205, and computes no more.
"""

HOME = "tensorflow.python.data.ops.dataset_ops"
# Every iterator is made of what this method of its dataset returns; the second is that of versions before 2.5.
PREPARATIONS = ("_apply_debug_options", "_apply_options")


def leave_untuned(dataset_ops):
    """Let this module's datasets be read without tuning, except those whose options say whether they are tuned."""
    kind = dataset_ops.DatasetV2
    name = next(name for name in PREPARATIONS if hasattr(kind, name))
    prepare = getattr(kind, name)

    def prepare_untuned(dataset):
        inner = dataset._dataset if isinstance(dataset, dataset_ops.DatasetV1Adapter) else dataset
        # In newer versions, the other way to ask for options runs an operation.
        given = getattr(inner, "_options_attr", None) or inner.options()
        if _is_tuned(given) is None:
            options = type(given)()
            _switch_off(options)
            dataset = dataset.with_options(options)
        return prepare(dataset)

    setattr(kind, name, prepare_untuned)


def _is_tuned(options):
    if hasattr(options, "autotune"):
        return options.autotune.enabled
    return options.experimental_optimization.autotune


def _switch_off(options):
    if hasattr(options, "autotune"):
        options.autotune.enabled = False
    else:
        options.experimental_optimization.autotune = False

"""One record of ten short strings, from a Python generator or from a dataset that was saved and loaded again.

A call iterates over a thousand records; the report has ten thousand.
"""

import os
import tempfile

PARAMS = {
    "source": ("generator", "saved"),
}

COMPARISONS = {"source": "generator"}

RECORDS, STRINGS = 1000, 10
TEXTS = [f"short text {number}" for number in range(RECORDS)]


def refuse(tf, params):
    if params["source"] == "saved" and not hasattr(tf.data.Dataset, "save"):
        return "Datasets have no `save` before TensorFlow 2.10."
    return None


def build(tf, params):
    iterate = records
    if params["source"] == "saved":
        signature = {str(number): tf.TensorSpec((), tf.string) for number in range(STRINGS)}
        folder = os.path.join(tempfile.mkdtemp(), "records")
        tf.data.Dataset.from_generator(records, output_signature=signature).save(folder)
        dataset = tf.data.Dataset.load(folder)
        iterate = lambda: iter(dataset)

    def step():
        for record in iterate():
            pass
        return record

    step.steps = RECORDS
    if params["source"] == "generator":
        step.no_result = "a Python generator, without TensorFlow"
    return step


def records():
    for text in TEXTS:
        yield {str(number): text for number in range(STRINGS)}

"""What the graphs of a tf.function leave behind in memory: one graph, or a graph for each of many shapes.

All these calls are made while the case is built; a step is one call more. So both cases make the same number of calls
and run the same operations, and their peak memory differs by the graphs that the calls before have left.
"""

from workloads import compat

PARAMS = {
    "shapes": ("one", "many"),
}

COMPARISONS = {"shapes": "one"}

CALLS = 60
# The memory of 60 graphs of this size shows next to the 300 MB of a TensorFlow that has done nothing yet.
OPERATIONS = 100


def build(tf, params):
    compat.use_mode(tf, "eager")

    def square(x):
        for _ in range(OPERATIONS):
            x = tf.multiply(x, x)
        return x

    function = compat.function(tf, square)
    for number in range(CALLS):
        function(tf.ones([number + 1 if params["shapes"] == "many" else 1]))
    one = tf.ones([1])
    return lambda: function(one)

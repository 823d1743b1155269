"""One `session.run` of a graph of two operations on one number.

feed  without: the number is a constant; with: it is fed in each run

A call makes a hundred runs.
"""

PARAMS = {
    "feed": ("without", "with"),
}

COMPARISONS = {"feed": "without"}

RUNS = 100


def build(tf, params):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, []) if params["feed"] == "with" else tf.constant(1.0)
        y = x * 2.0 + 1.0
    session = v1.Session(graph=graph)
    feed = {x: 1.0} if params["feed"] == "with" else None

    def step():
        for _ in range(RUNS):
            result = session.run(y, feed)
        return result

    step.steps = RUNS
    return step

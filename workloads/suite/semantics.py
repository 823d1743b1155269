"""What eager execution does and a graph does not: a step checks it and fails where it is not so.

unused_gather      an operation whose result nobody uses still raises its error eagerly; a graph leaves it out
print_side_effect  what Python does besides, like printing, happens in each eager call; in a graph only while tracing
variables          a function updates a variable from outside in each call, and may make none after its first

The times are those of the checks, and tell nothing about what is checked.
"""

from workloads import compat

PARAMS = {
    "which": ("unused_gather", "print_side_effect", "variables"),
}

CALLS = 3


def build(tf, params):
    compat.use_mode(tf, "eager")
    return CHECKS[params["which"]](tf)


def unused_gather(tf):
    one = tf.constant([0.0])

    def unused(x):
        with tf.device("CPU:0"):  # on a GPU gather finds a zero there and no error
            tf.gather(x, [1])
        return x

    def step():
        check(raises(tf.errors.InvalidArgumentError, unused, one), "eagerly an unused operation's error is raised")
        check(not raises(tf.errors.InvalidArgumentError, compat.function(tf, unused), one), "a graph has no unused operations")

    return step


def print_side_effect(tf):
    numbers = [tf.constant(float(number)) for number in range(CALLS)]
    effects = []

    def square(x):
        effects.append(x)
        return x * x

    def count(function):
        del effects[:]
        for number in numbers:
            function(number)
        return len(effects)

    def step():
        check(count(square) == CALLS, "eagerly Python's side effects happen in each call")
        check(count(compat.function(tf, square)) == 1, "in a graph Python's side effects happen once, while tracing")

    return step


def variables(tf):
    total = tf.Variable(0.0)
    one = tf.constant(1.0)

    def step():
        made = []

        def add(x, make):
            if make or not made:
                made.append(tf.Variable(0.0))
            total.assign_add(x)
            return made[0].assign_add(x)

        function = compat.function(tf, add)
        total.assign(0.0)
        results = [function(one, False).numpy() for _ in range(CALLS)]
        check(results == [1.0, 2.0, 3.0], "a variable made in the first call is updated by each")
        check(total.numpy() == CALLS, "a variable made outside is updated by each call")
        check(raises(ValueError, function, one, True), "a later call may make no variable")

    return step


def raises(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return True
    return False


def check(holds, statement):
    if not holds:
        raise AssertionError("not so in this TensorFlow: {}".format(statement))


CHECKS = {"unused_gather": unused_gather, "print_side_effect": print_side_effect, "variables": variables}

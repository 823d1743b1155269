"""What eager execution does and a graph does not: a step checks it and fails where it is not so.

unused_gather      an operation whose result is not used still raises its error eagerly; a graph leaves it out
print_side_effect  what Python does besides, like printing, happens in each eager call; in a graph only while tracing
variables          a function updates a variable from outside in each call, and may make none after its first
execution          an eager operation runs when Python reaches it; an operation of a graph when the graph runs
inner_code         a tf.function includes the functions that it calls, and AutoGraph converts their `if`
objects            a function makes a graph for each new Python object, and uses it again for the same object
types              a list is another type of input than a tensor; the same list uses its graph again
outer_value        a graph keeps the value that a Python variable from outside had while tracing
tf_print           tf.print prints in each call of a graph
saved_graph        a graph that was saved and loaded runs without the Python code that made it
run_eagerly        after tf.config.run_functions_eagerly(True), a tf.function runs its Python code in each call

The times are those of the checks, and tell nothing about what is checked.
"""

import os
import tempfile

from workloads import compat

PARAMS = {
    "which": (
        "unused_gather",
        "print_side_effect",
        "variables",
        "execution",
        "inner_code",
        "objects",
        "types",
        "outer_value",
        "tf_print",
        "saved_graph",
        "run_eagerly",
    ),
}

CALLS = 3


def build(tf, params):
    compat.use_mode(tf, "eager")
    step = CHECKS[params["which"]](tf)
    step.no_result = "a call checks statements, and fails if one does not hold"
    return step


def unused_gather(tf):
    one = tf.constant([0.0])

    def unused(x):
        with tf.device("CPU:0"):  # gather on a GPU finds a zero there and no error
            tf.gather(x, [1])
        return x

    def step():
        check(raises(tf.errors.InvalidArgumentError, unused, one), "eagerly an unused operation's error is raised")
        check(
            not raises(tf.errors.InvalidArgumentError, compat.function(tf, unused), one),
            "a graph has no unused operations",
        )

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


def execution(tf):
    runs = []

    def note(x):
        runs.append(x)
        return x

    def operation():
        return tf.py_function(note, [tf.constant(1.0)], tf.float32)

    def step():
        del runs[:]
        operation()
        check(len(runs) == 1, "an eager operation runs when Python reaches it")
        with tf.Graph().as_default():
            result = operation()
            check(len(runs) == 1, "an operation of a graph does not run when Python reaches it")
            with tf.compat.v1.Session() as session:
                session.run(result)
        check(len(runs) == 2, "an operation of a graph runs when the graph does")

    return step


def inner_code(tf):
    numbers = [tf.constant(number) for number in (2.0, -3.0, -4.0)]
    effects = []

    def size(x):
        effects.append(x)
        if x > 0.0:
            return x
        return -x

    def outer(x):
        return size(x) + 1.0

    def step():
        del effects[:]
        function = compat.function(tf, outer)
        results = [function(number).numpy() for number in numbers]
        check(results == [3.0, 4.0, 5.0], "the `if` of an inner function depends on each call's tensor")
        check(len(effects) == 1, "a graph includes the functions that its function calls")

    return step


def objects(tf):
    one = tf.constant(1.0)

    class Setting:
        factor = 2.0

    def step():
        effects = []

        def scale(x, setting):
            effects.append(setting)
            return x * setting.factor

        function = compat.function(tf, scale)
        first, second = Setting(), Setting()
        for setting in (first, first, second, second, first):
            function(one, setting)
        check(len(effects) == 2, "there is one graph for each object")

    return step


def types(tf):
    tensor, numbers = tf.constant([1.0, -1.0]), [1.0, -1.0]

    def step():
        effects = []

        def relu(x):
            effects.append(x)
            return tf.maximum(0.0, x)

        function = compat.function(tf, relu)
        function(tensor)
        function(numbers)
        check(len(effects) == 2, "a list is traced although a tensor of the same numbers was")
        function(tensor)
        function(list(numbers))
        check(len(effects) == 2, "types that were traced are not traced again")

    return step


def outer_value(tf):
    one = tf.constant(1.0)

    def step():
        settings = {"factor": 1.0}

        def scale(x):
            return x * settings["factor"]

        function = compat.function(tf, scale)
        function(one)
        settings["factor"] = 2.0
        check(scale(one).numpy() == 2.0, "eagerly a new value of an outer variable counts")
        check(function(one).numpy() == 1.0, "a graph keeps the outer variable's value from tracing")

    return step


def tf_print(tf):
    numbers = [tf.constant(float(number)) for number in range(CALLS)]

    def step():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "printed")

            def square(x):
                tf.print(x, output_stream="file://" + path)
                return x * x

            function = compat.function(tf, square)
            for number in numbers:
                function(number)
            with open(path) as printed:
                lines = printed.read().split()
        check(len(lines) == CALLS, "tf.print prints in each call of a graph")

    return step


def saved_graph(tf):
    three = tf.constant(3.0)

    def step():
        effects = []

        def double(x):
            effects.append(x)
            return 2.0 * x

        module = tf.Module()
        module.double = compat.function(tf, double)
        module.double(three)
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder)
            del effects[:]
            loaded = tf.saved_model.load(folder)
            check(loaded.double(three).numpy() == 6.0, "a saved graph computes the same after it was loaded")
        check(not effects, "a loaded graph does not run the Python code that made it")

    return step


def run_eagerly(tf):
    numbers = [tf.constant(float(number)) for number in range(CALLS)]

    def step():
        effects = []

        def square(x):
            effects.append(x)
            return x * x

        function = compat.function(tf, square)
        compat.run_functions_eagerly(tf, True)
        try:
            eager = [function(number).numpy() for number in numbers]
        finally:
            compat.run_functions_eagerly(tf, False)
        check(len(effects) == CALLS, "the Python code of a tf.function that runs eagerly runs in each call")
        check(eager == [function(number).numpy() for number in numbers], "a graph computes the same as its Python code")
        check(len(effects) == CALLS + 1, "as a graph again, the Python code runs only to be traced")

    return step


def raises(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return True
    return False


def check(holds, statement):
    if not holds:
        raise AssertionError(f"not so in this TensorFlow: {statement}")


CHECKS = {
    "unused_gather": unused_gather,
    "print_side_effect": print_side_effect,
    "variables": variables,
    "execution": execution,
    "inner_code": inner_code,
    "objects": objects,
    "types": types,
    "outer_value": outer_value,
    "tf_print": tf_print,
    "saved_graph": saved_graph,
    "run_eagerly": run_eagerly,
}

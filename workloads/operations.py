"""How many operations of TensorFlow a call runs: eager ones, and the nodes of graphs that functions and sessions run.

Graphs are counted as TensorFlow's optimizer gets them, without what their results do not need. So a count is the same
on every machine. The body of a branch or a loop counts once.
"""

import threading

from workloads.counting import SteadyCounter

# These functions of TensorFlow run an eager operation; the slow ones also run a function that they get by its name.
FAST, SLOW, CANCELABLE = "TFE_Py_FastPathExecute", "TFE_Py_Execute", "TFE_Py_ExecuteCancelable"


class Uncountable(Exception):
    """TensorFlow does not say which operations it runs."""


class Operations:
    """Knows where this TensorFlow runs operations, and what each callable of a session runs.

    It is made before the workload, and left before the functions of Python are counted. A release that lacks a place
    raises ImportError, AttributeError or KeyError.
    """

    def __init__(self):
        from tensorflow.python.client import session
        from tensorflow.python.eager import context, execute
        from tensorflow.python.framework import op_def_registry

        self.session = session.BaseSession
        self.name_of = session.tf_session.TF_OperationName
        self.context = context.context
        # Before 2.2, another module has these functions. Generated code looks them up there at each call.
        self.executors = execute.pywrap_tfe if hasattr(execute, "pywrap_tfe") else execute.pywrap_tensorflow
        self.registered = getattr(op_def_registry, "get", None) or op_def_registry.get_registered_ops().get
        self.defined_function = None
        if not hasattr(context.Context, "get_function_def"):
            from tensorflow.python.eager import function

            self.defined_function = function._EagerDefinedFunction
        self.counter()
        self._callables = Patches([(self.session, "_make_callable_from_options", self._remember)])
        self._callables.apply()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._callables.undo()

    def counter(self):
        return Counter(self)

    def is_stateful(self, operation):
        """Return whether an operation runs even if no result needs it, or None if no operation has this name."""
        definition = self.registered(operation)
        return None if definition is None else definition.is_stateful

    @staticmethod
    def _remember(make):
        def remember(session, options):
            made = make(session, options)
            made.counted_options = options
            return made

        return remember


class Patches:
    """Attributes that are replaced for a while, each by what `make` returns for it."""

    def __init__(self, places):
        self._places = [(owner, name, make(vars(owner)[name])) for owner, name, make in places]
        self._before = []

    def apply(self):
        for owner, name, replacement in self._places:
            self._before.append(vars(owner)[name])
            setattr(owner, name, replacement)

    def undo(self):
        """Put back what was there, and return whether the replacements were still there."""
        kept = all(vars(owner).get(name) is replacement for owner, name, replacement in self._places)
        for (owner, name, _), before in zip(self._places, self._before):
            setattr(owner, name, before)
        return kept


class Counter(SteadyCounter):
    """The operations that this thread runs while the counter is entered; None if some of them cannot be counted.

    Only an operation that succeeds counts: where a fast path fails, a slow one follows.
    """

    def __init__(self, tensorflow):
        super().__init__()
        self._tensorflow = tensorflow
        self._thread = threading.get_ident()
        self._definitions = {}
        self._graphs = {}
        self._sizes = Sizes(self._find_function, tensorflow.is_stateful)
        places = [
            (tensorflow.executors, FAST, self._see_fast),
            (tensorflow.executors, SLOW, self._see_slow),
            (tensorflow.session, "_call_tf_sessionrun", self._see_run),
            (tensorflow.session, "_call_tf_sessionprun", self._see_partial_run),
            (tensorflow.session._Callable, "__call__", self._see_callable),
        ]
        if hasattr(tensorflow.executors, CANCELABLE):
            places.append((tensorflow.executors, CANCELABLE, self._see_slow))
        if tensorflow.defined_function:
            places.append((tensorflow.defined_function, "call", self._see_definition))
        self._patches = Patches(places)

    def __enter__(self):
        super().__enter__()
        self._patches.apply()
        return self

    def __exit__(self, *raised):
        if not self._patches.undo():
            self.count = None
        super().__exit__(*raised)

    def _add(self, measure, *values):
        if self.count is None or threading.get_ident() != self._thread:
            return
        try:
            self.count += measure(*values)
        except Exception:
            # A call does not fail because it cannot be counted.
            self.count = None

    def _see_fast(self, execute):
        def seen(*args):
            result = execute(*args)
            self._add(int, 1)
            return result

        return seen

    def _see_slow(self, execute):
        def seen(*args):
            result = execute(*args)
            self._add(self._measure_function, args[2])
            return result

        return seen

    def _see_run(self, run):
        def seen(session, options, feeds, fetches, targets, metadata):
            result = run(session, options, feeds, fetches, targets, metadata)
            self._add(self._measure_run, session, feeds, fetches, targets)
            return result

        return seen

    def _see_partial_run(self, run):
        def seen(*args):
            self._add(_refuse)
            return run(*args)

        return seen

    def _see_callable(self, call):
        def seen(made, *args, **kwargs):
            result = call(made, *args, **kwargs)
            self._add(self._measure_callable, made)
            return result

        return seen

    def _see_definition(self, call):
        def seen(function, *args, **kwargs):
            for each in (function, *function.graph._functions.values()):
                self._definitions[_as_text(each.name)] = each.definition
            return call(function, *args, **kwargs)

        return seen

    def _find_function(self, name):
        """Return the definition of a function, or None if no function has this name."""
        context = self._tensorflow.context()
        if not context.has_function(name):
            return None
        if self._tensorflow.defined_function:
            return self._definitions[name]
        return context.get_function_def(name)

    def _measure_function(self, name):
        return self._sizes.of(_as_text(name))

    def _measure_run(self, session, feeds, fetches, targets):
        name_of = self._tensorflow.name_of
        wanted = [_as_text(name_of(each)) for each in (*(output.oper for output in fetches), *targets)]
        fed = {f"{_as_text(name_of(output.oper))}:{output.index}" for output in feeds}
        return self._measure_graph(session.graph, wanted, fed)

    def _measure_callable(self, made):
        options = made.counted_options
        sources = [each.from_tensor for each in options.tensor_connection]
        wanted = [_node_of(name) for name in (*options.fetch, *options.target, *sources)]
        fed = {*options.feed, *(each.to_tensor for each in options.tensor_connection)}
        return self._measure_graph(made._session.graph, wanted, fed)

    def _measure_graph(self, graph, wanted, fed):
        key = graph, graph.version
        if key not in self._graphs:
            definition = graph.as_graph_def()
            functions = {function.signature.name: function for function in definition.library.function}
            nodes = {node.name: node for node in definition.node}
            self._graphs[key] = nodes, Sizes(functions.get, self._tensorflow.is_stateful)
        nodes, sizes = self._graphs[key]
        return sizes.add_up(_reach(nodes, wanted, fed))


class Sizes:
    """The numbers of operations that functions run, by their names."""

    def __init__(self, find, is_stateful):
        self._find = find
        self._is_stateful = is_stateful
        self._known = {}

    def of(self, name):
        """Return how many operations a function runs, or 1 if this is the name of an operation."""
        if name not in self._known:
            # A function that calls itself counts once.
            self._known[name] = 0
            function = None if self._is_operation(name) else self._find(name)
            self._known[name] = 1 if function is None else self.add_up(self._needed(function))
        return self._known[name]

    def add_up(self, nodes):
        """Return how many operations nodes run, with those of the functions that they call or have as attributes."""
        total = 0
        for node in nodes:
            total += 1
            if not self._is_operation(node.op) and self._find(node.op) is not None:
                total += self.of(node.op)
            for value in node.attr.values():
                total += sum(self.of(function.name) for function in (value.func, *value.list.func) if function.name)
        return total

    def _is_operation(self, name):
        return self._is_stateful(name) is not None

    def _needed(self, function):
        """Return the nodes of a function that it runs: those that change something, and those that a result needs."""
        nodes = {node.name: node for node in function.node_def}
        wanted = [*map(_node_of, function.ret.values()), *function.control_ret.values()]
        wanted += [node.name for node in nodes.values() if self._is_stateful(node.op) is not False]
        return _reach(nodes, wanted, ())


def _reach(nodes, wanted, fed):
    """Return the nodes that a graph runs for those that are wanted, if these outputs are fed."""
    found, left = {}, list(wanted)
    while left:
        name = left.pop()
        # The arguments of a function are no nodes.
        if name in found or name not in nodes:
            continue
        found[name] = nodes[name]
        for needed in nodes[name].input:
            if needed.startswith("^"):
                left.append(needed[1:])
            elif (needed if ":" in needed else needed + ":0") not in fed:
                left.append(_node_of(needed))
    return found.values()


def _node_of(output):
    return output.partition(":")[0]


def _as_text(name):
    return name if isinstance(name, str) else name.decode()


def _refuse():
    raise Uncountable("a part of a run")

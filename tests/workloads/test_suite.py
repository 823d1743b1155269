"""What the host may rely on in every workload file, without a TensorFlow."""

import ast
import glob
import importlib
import itertools
import os
import re
import sys
import types
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    raise unittest.SkipTest("the workloads need numpy")

try:
    import tomllib  # novm
except ImportError:  # before Python 3.11, where only the container side runs
    tomllib = None

WORKLOADS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "workloads")
FILES = sorted(path for path in glob.glob(os.path.join(WORKLOADS, "suite", "*.py")) if "__init__" not in path)
CONSTANTS = ("PARAMS", "COMPARISONS", "EXCLUDE")


# These say how a separate process ended or what it printed, and compute nothing.
ABOUT_PROCESSES = ("epoch_end", "import_messages")


class Workload:
    """A workload file as the host sees it: parsed, never run."""

    def __init__(self, path):
        with open(path) as source:
            self.tree = ast.parse(source.read())
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.constants = {
            getattr(node.targets[0], "id", ""): node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in CONSTANTS
        }

    def literal(self, name, default):
        return ast.literal_eval(self.constants[name]) if name in self.constants else default

    @property
    def params(self):
        return self.literal("PARAMS", None)

    def cases(self):
        for values in itertools.product(*self.params.values()):
            yield dict(zip(self.params, values))


class Results:
    """What the calls of a workload return: the expressions to which `build` and the functions that it uses lead.

    A name means every function and value of the file that has it.
    """

    STATEMENTS = ("bool", "isinstance", "len", "hasattr", "isfinite", "isnan", "all", "any", "allclose", "array_equal")
    SHAPES = ("shape", "size", "ndim", "dtype")
    # These say no more than their arguments.
    PLAIN = ("int", "float", "str", "sum", "min", "max", "abs", "round", "tuple", "list")

    def __init__(self, *trees):
        self.functions, self.values, self.counted = {}, {}, set()
        for tree in trees:
            self._read(tree, False)
        self.steps = [
            step for build in self.functions["build"] for value in self._returns(build) for step in self._callables(value)
        ]
        self.returned = [found for step in self.steps for value in self._returns(step) for found in self._follow(value)]

    def _read(self, node, in_branch):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                self.functions.setdefault(child.name, []).append(child)
            elif isinstance(child, (ast.Assign, ast.AugAssign)):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                for name in (target.id for target in targets if isinstance(target, ast.Name)):
                    self.values.setdefault(name, []).append(child.value)
                    if isinstance(child, ast.AugAssign) and in_branch:
                        # How often depends on what is computed.
                        self.counted.add(name)
            self._read(child, in_branch or isinstance(child, ast.If))

    def _returns(self, function):
        """The values that a function returns, and not those of the functions inside it."""
        if isinstance(function, ast.Lambda):
            return [function.body]
        found, waiting = [], list(function.body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                found.append(node.value)
            if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
                waiting.extend(ast.iter_child_nodes(node))
        return found

    def _callables(self, node, making=()):
        """The functions that a value is, or that it was made of; `making` are the calls whose makers are looked for."""
        found, waiting, seen = [], [node], set(making)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, ast.Lambda):
                found.append(node)
            elif isinstance(node, ast.Name):
                found += self.functions.get(node.id, [])
                waiting += self.values.get(node.id, [])
            elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "training":
                found += self.functions.get(node.attr, [])
            elif isinstance(node, ast.Call):
                makers = self._callables(node.func, making + (node,))
                # Without a maker in this file, it is such as tf.function.
                waiting += [value for maker in makers for value in self._returns(maker)] if makers else node.args
            elif isinstance(node, ast.IfExp):
                waiting += [node.body, node.orelse]
            elif isinstance(node, ast.Subscript):
                waiting.append(node.value)
            elif isinstance(node, ast.Dict):
                waiting += node.values
        return found

    def _follow(self, node):
        """A value, and those of the functions that it comes from."""
        found, waiting = [], [node]
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.append(node)
            if isinstance(node, ast.IfExp):
                waiting += [node.body, node.orelse]
            elif isinstance(node, ast.Call):
                waiting += [value for function in self._callables(node.func) for value in self._returns(function)]
            elif isinstance(node, ast.Name):
                waiting += [value for value in self.values.get(node.id, []) if isinstance(value, (ast.Call, ast.IfExp))]
        return found

    def says_nothing(self, node, names=()):
        """Whether a value is a constant, or says whether something holds or how many there are."""
        if isinstance(node, (ast.Compare, ast.BoolOp)) or isinstance(getattr(node, "op", None), ast.Not):
            return True
        if isinstance(node, ast.Attribute):
            return node.attr in self.SHAPES
        parts = []
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in self.STATEMENTS:
                return True
            parts = node.args if called in self.PLAIN else []
        elif isinstance(node, ast.Name) and node.id not in self.counted:
            if node.id in names:
                return True
            names, parts = names + (node.id,), self.values.get(node.id, [])
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            parts = [node.elt]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = node.elts
        if parts:
            return all(self.says_nothing(part, names) for part in parts)
        try:
            return ast.literal_eval(node) is not None
        except ValueError:
            return False


# Files whose calls return nothing that TensorFlow has computed, and files whose calls do.
CONSTANT = (
    "def build(tf, params): return lambda: True",
    "def build(tf, params): return lambda: x.shape[-1]",
    "def build(tf, params): return lambda: sum(int(batch.shape[0]) for batch in batches)",
    "def build(tf, params): return lambda: sum(1 for _ in batches)",
    "def build(tf, params): return lambda: (len(x), 3)",
    "def build(tf, params): return lambda: sum(losses) > 0",
    "def build(tf, params): return lambda: numpy.isfinite(loss)",
    """
def build(tf, params):
    if params:
        return lambda: loss
    return LOOPS["fit"](model)

def fit(model):
    return lambda: not model

LOOPS = {"fit": fit}
""",
    """
def build(tf, params):
    step = lambda: load(params)
    return step

def load(params):
    return len(params)
""",
    """
def build(tf, params):
    def train():
        return 1.0
    return compat.function(tf, train)
""",
    """
def build(tf, params):
    process = eagerly() if params else in_graph()
    def step():
        return process(tf)
    return step

def eagerly():
    def process(x):
        return x
    return process

def in_graph():
    def process(x):
        count = 0
        for _ in x:
            count += 1
        return count
    return process
""",
)
COMPUTED = (
    "def build(tf, params): return lambda: model.predict(x)",
    "def build(tf, params): return lambda: serve(x) if loaded else None",
    "def build(tf, params): return lambda: losses[-1]",
    "def build(tf, params): return compat.function(tf, lambda x: x * 2)",
    """
def build(tf, params):
    def step():
        total = even = 0
        for x in rows:
            total += train(x)
            if x % 2 == 0:
                even += 1
        return total, even
    return step

def train(x):
    return x * 2

def refuse(tf, params):
    return "It cannot."
""",
)

ALL = {workload.name: workload for workload in map(Workload, FILES)}


class Contract(unittest.TestCase):
    def each(self):
        for name, workload in sorted(ALL.items()):
            with self.subTest(workload=name):
                yield workload

    def test_the_built_in_workloads_are_here(self):
        study = {"forward", "import", "power", "predict", "semantics", "tracing", "train_loop"}
        self.assertLessEqual(study, set(ALL))

    def test_the_docstring_begins_with_a_summary(self):
        for workload in self.each():
            summary = (ast.get_docstring(workload.tree) or "").split("\n")[0]
            self.assertTrue(summary.endswith("."), summary)

    def test_params_is_a_literal_of_strings(self):
        for workload in self.each():
            for values in workload.params.values():
                self.assertIsInstance(values, tuple)
                self.assertTrue(values and all(isinstance(value, str) for value in values))
                self.assertEqual(len(set(values)), len(values))

    def test_names_and_values_can_be_written_in_a_selector(self):
        for workload in self.each():
            for name, values in workload.params.items():
                for text in (name,) + values:
                    self.assertTrue(re.match(r"[\w.]+$", text), text)

    def test_a_comparison_has_one_of_the_values_as_its_baseline(self):
        for workload in self.each():
            for name, baseline in workload.literal("COMPARISONS", {}).items():
                self.assertIn(baseline, workload.params[name])

    def test_an_exclusion_excludes_something_and_not_everything(self):
        for workload in self.each():
            cases = list(workload.cases())
            for excluded in workload.literal("EXCLUDE", ()):
                matching = [case for case in cases if excluded.items() <= case.items()]
                self.assertTrue(0 < len(matching) < len(cases), excluded)

    def test_importing_one_needs_no_tensorflow(self):
        before = {name: sys.modules.get(name) for name in ("tensorflow", "keras")}
        sys.modules.update(tensorflow=None, keras=None)
        try:
            for workload in self.each():
                sys.modules.pop("workloads.suite." + workload.name, None)
                module = importlib.import_module("workloads.suite." + workload.name)
                self.assertTrue(callable(module.build), workload.name)
        finally:
            for name, module in before.items():
                del sys.modules[name]
                if module is not None:
                    sys.modules[name] = module

    def test_build_takes_tensorflow_and_the_parameters(self):
        for workload in self.each():
            functions = {
                node.name: [argument.arg for argument in node.args.args]
                for node in workload.tree.body
                if isinstance(node, ast.FunctionDef)
            }
            for name in ("build", "refuse"):
                arguments = functions.get(name, ["tf", "params"])
                self.assertIn(arguments, (["tf", "params"], ["keras", "params"]), (workload.name, name))

    def test_no_call_returns_a_constant_or_only_whether_or_how_many(self):
        with open(os.path.join(WORKLOADS, "training.py")) as source:
            shared = ast.parse(source.read())
        lines = []
        for workload in self.each():
            results = Results(workload.tree, shared)
            self.assertTrue(results.steps, "what build returns is not found")
            found = [result for result in results.returned if results.says_nothing(result)]
            if workload.name in ABOUT_PROCESSES:
                self.assertTrue(found)
                continue
            lines += [f"{workload.name}:{result.lineno}" for result in found]
        self.assertEqual(lines, [])

    def test_a_constant_is_found_wherever_it_comes_from(self):
        for says_nothing, bodies in ((True, CONSTANT), (False, COMPUTED)):
            for body in bodies:
                with self.subTest(body=body):
                    results = Results(ast.parse(body))
                    self.assertTrue(results.steps)
                    self.assertEqual(any(map(results.says_nothing, results.returned)), says_nothing)


class Refusals(unittest.TestCase):
    """The stand-in for TensorFlow has a version and nothing else: proves the plumbing, not what TensorFlow does."""

    def refused(self, name, version, **parts):
        module = importlib.import_module("workloads.suite." + name)
        tf = types.SimpleNamespace(__version__=version, **parts)
        reasons = [(case, module.refuse(tf, case)) for case in ALL[name].cases()]
        for _, reason in reasons:
            self.assertTrue(reason is None or reason.endswith("."), reason)
        return [case for case, reason in reasons if reason]

    def test_power_refuses_jit_before_it_existed(self):
        for version in ("1.14.0", "2.0.0", "2.4.4"):
            self.assertEqual(self.refused("power", version), [{"style": "jit"}])
        self.assertEqual(self.refused("power", "2.13.0"), [])

    def test_predict_refuses_direct_calls_in_tensorflow_1(self):
        self.assertEqual({case["call"] for case in self.refused("predict", "1.14.0")}, {"call"})
        self.assertEqual(self.refused("predict", "2.0.0"), [])

    def forward_refused(self, version, *families):
        applications = types.SimpleNamespace(**dict.fromkeys(families))
        refused = self.refused("forward", version, keras=types.SimpleNamespace(applications=applications))
        return {(case["net"], case["style"]) for case in refused}

    def test_forward_refuses_nets_that_came_later(self):
        refused = self.forward_refused("2.7.4", "mobilenet_v2")
        self.assertEqual(refused, {("efficientnet_v2s", style) for style in ALL["forward"].params["style"]})
        self.assertEqual(self.forward_refused("2.8.4", "mobilenet_v2", "efficientnet_v2"), set())

    def test_forward_refuses_the_jit_switch_before_it_existed(self):
        for version in ("1.14.0", "2.0.0"):
            refused = self.forward_refused(version, "mobilenet_v2", "efficientnet_v2")
            self.assertEqual({style for _, style in refused}, {"jit_false", "jit_true"})
        self.assertEqual(self.forward_refused("2.1.4", "mobilenet_v2", "efficientnet_v2"), set())

    def test_train_loop_runs_all_of_tf_keras_before_keras_3(self):
        for version in ("1.14.0", "2.0.0", "2.13.0"):
            self.assertEqual({case["api"] for case in self.refused("train_loop", version)} - {"keras"}, set())

    def test_train_loop_runs_only_eager_tf_keras_with_keras_3(self):
        refused = self.refused("train_loop", "2.20.0")
        measured = [case for case in ALL["train_loop"].cases() if case not in refused]
        self.assertEqual({(case["api"], case["mode"]) for case in measured}, {("tf.keras", "eager")})


def same(value):
    return value


class Tracing(unittest.TestCase):
    """Arguments as numpy arrays: what is new in them is decided before TensorFlow sees them."""

    # As many calls as a replicate makes at most, and some.
    CALLS = 1100

    def signatures(self, argument):
        module = importlib.import_module("workloads.suite.tracing")
        arguments = module.NEW[argument](types.SimpleNamespace(constant=same))
        calls = [next(arguments) for _ in range(self.CALLS)]
        self.assertEqual({len(call) for call in calls}, {module.ARGUMENTS})
        return [tuple((getattr(part, "dtype", part), getattr(part, "shape", None)) for part in call) for call in calls]

    def test_tensors_look_alike_in_every_call(self):
        self.assertEqual(len(set(self.signatures("tensor"))), 1)

    def test_every_other_argument_is_new_in_each_call(self):
        for argument in ("python_scalar", "shape", "dtype"):
            self.assertEqual(len(set(self.signatures(argument))), self.CALLS, argument)


class Semantics(unittest.TestCase):
    def test_a_step_fails_where_its_statement_is_false(self):
        module = importlib.import_module("workloads.suite.semantics")
        without_graphs = types.SimpleNamespace(__version__="2.13.0", constant=same, function=same)
        step = module.build(without_graphs, {"which": "print_side_effect"})
        with self.assertRaisesRegex(AssertionError, "in a graph Python's side effects happen once"):
            step()


class Import(unittest.TestCase):
    def setUp(self):
        self.module = importlib.import_module("workloads.suite.import")

    def test_a_step_is_a_process_from_start_to_end(self):
        self.assertIsNone(self.module.build(None, {"what": "nothing"})())

    def test_a_process_that_fails_fails_the_step(self):
        self.module.PROGRAMS["nothing"] = "raise SystemExit(3)"
        try:
            step = self.module.build(None, {"what": "nothing"})
        finally:
            self.module.PROGRAMS["nothing"] = ""
        with self.assertRaisesRegex(RuntimeError, "SystemExit.*exit code 3"):
            step()


@unittest.skipUnless(tomllib, "suites are read by the host, which has tomllib")
class Suites(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(WORKLOADS, "suites.toml"), "rb") as file:
            self.suites = tomllib.load(file)

    def select(self, selector):
        name, _, inside = selector.rstrip("]").partition("[")
        wanted = dict(part.split("=") for part in inside.split(",") if part)
        workload = ALL[name]
        for param, values in wanted.items():
            self.assertLessEqual(set(values.split("|")), set(workload.params[param]), selector)
        for case in workload.cases():
            excluded = any(each.items() <= case.items() for each in workload.literal("EXCLUDE", ()))
            if not excluded and all(case[param] in values.split("|") for param, values in wanted.items()):
                yield name, tuple(case.items())

    def cases(self, suite):
        selectors = self.suites[suite]["cases"]
        return [case for selector in (sorted(ALL) if selectors == ["*"] else selectors) for case in self.select(selector)]

    def test_each_has_a_summary(self):
        self.assertEqual(set(self.suites), {"smoke", "quick", "studies", "models", "backends", "atlas", "full"})
        self.assertTrue(all(suite["summary"].endswith(".") or "?" in suite["summary"] for suite in self.suites.values()))

    def test_no_case_is_in_a_suite_twice(self):
        for suite in self.suites:
            self.assertEqual(len(self.cases(suite)), len(set(self.cases(suite))), suite)

    def test_smoke_has_one_case_of_each_workload_of_the_studies_that_is_quick_to_build(self):
        studies = {name for name, _ in self.cases("studies")} - {"forward"}
        self.assertEqual(sorted(name for name, _ in self.cases("smoke")), sorted(studies))
        self.assertLessEqual(set(self.cases("smoke")), set(self.cases("studies")))

    def test_studies_has_every_value_of_the_small_model(self):
        cases = [dict(params) for name, params in self.cases("studies") if name == "train_loop"]
        small = [case for case in cases if case["model"] == "small"]
        for name, values in ALL["train_loop"].params.items():
            if name != "model":
                self.assertEqual({case[name] for case in small}, set(values), name)

    def test_quick_has_the_eight_cases_of_the_design(self):
        self.assertEqual(len(self.cases("quick")), 4 + 2 + 2)

    def test_full_has_every_case_of_every_workload(self):
        everything = [case for name in ALL for case in self.select(name)]
        self.assertEqual(set(self.cases("full")), set(everything))
        self.assertLess(set(self.cases("studies")), set(everything))


if __name__ == "__main__":
    unittest.main()

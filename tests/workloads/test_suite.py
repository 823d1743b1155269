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
CONSTANTS = ("PARAMS", "CONTRASTS", "EXCLUDE")


class Workload(object):
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

    def test_a_contrast_has_one_of_the_values_as_its_baseline(self):
        for workload in self.each():
            for name, baseline in workload.literal("CONTRASTS", {}).items():
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
            self.assertEqual(functions["build"], ["tf", "params"])
            self.assertEqual(functions.get("refuse", ["tf", "params"]), ["tf", "params"])


    def test_no_call_returns_only_whether_something_holds(self):
        statements = ("isfinite", "isnan", "all", "any", "allclose", "array_equal")
        for workload in self.each():
            build = next(node for node in workload.tree.body if getattr(node, "name", "") == "build")
            returns = [node for node in ast.walk(build) if isinstance(node, ast.Return)]
            values = [node.value.body for node in returns if isinstance(node.value, ast.Lambda)]
            steps = [node for node in ast.walk(build) if getattr(node, "name", "") in ("step", "call", "measured")]
            values += [node.value for step in steps for node in ast.walk(step) if isinstance(node, ast.Return)]
            for value in filter(None, values):
                called = getattr(getattr(value, "func", None), "attr", "")
                self.assertNotIn(called, statements)
                self.assertNotIsInstance(value, (ast.Compare, ast.BoolOp))
                self.assertNotIsInstance(getattr(value, "value", None), bool)


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
        applications = types.SimpleNamespace(**{family: None for family in families})
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
            if all(case[param] in values.split("|") for param, values in wanted.items()):
                if not any(excluded.items() <= case.items() for excluded in workload.literal("EXCLUDE", ())):
                    yield name, tuple(case.items())

    def cases(self, suite):
        selectors = self.suites[suite]["cases"]
        return [case for selector in (sorted(ALL) if selectors == ["*"] else selectors) for case in self.select(selector)]

    def test_each_has_a_summary(self):
        self.assertEqual(set(self.suites), {"smoke", "quick", "studies", "models", "full"})
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

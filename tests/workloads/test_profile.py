"""What stands in a profile: who was called how often and from where, named alike in every version and on every machine."""

import cProfile
import os
import sys
import types
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("compat needs numpy")

from workloads import profile


def leaf():
    return sum([1])


def twice():
    leaf()
    leaf()


def countdown(number):
    return countdown(number - 1) if number else leaf()


class Model:
    def predict(self):
        return [leaf() for _ in "ab"]


def traced(step, calls=3):
    tree = profile.Tree()
    for _ in range(calls):
        profile._timed(step, tree)
    return tree


def untold():
    """A tracer that hears only what a test tells it."""
    tree = profile.Tree()
    tree.enable()
    sys.setprofile(None)
    tree.path, tree.keys = [tree.root], [None]
    return tree


def places():
    return profile.Places([os.path.dirname(os.path.abspath(__file__))])


def stacks(tree):
    """{stack of names: own ns}"""
    found = tree.stacks(places())
    paths, named = [], {}
    for parent, frame, own_ns in found["nodes"]:
        paths.append((paths[parent] if parent >= 0 else ()) + (found["frames"][frame][2],))
        named[paths[-1]] = own_ns
    return named


def calls(tree):
    return {code if isinstance(code, str) else code.co_name: count for code, count, _, _ in tree.spent()}


class Names(unittest.TestCase):
    def test_a_function_written_in_c_is_named_without_its_module_and_its_address(self):
        for text, name in (
            ("<built-in method builtins.isinstance>", "isinstance"),
            ("<built-in method _pywrap_tensorflow_internal.TFE_Py_FastPathExecute>", "TFE_Py_FastPathExecute"),
            ("<built-in method tensorflow.python._pywrap_tfe.TFE_Py_Execute>", "TFE_Py_Execute"),
            ("<method 'append' of 'list' objects>", "list.append"),
            ("<method 'CopyFrom' of 'google.protobuf.pyext._message.CMessage' objects>", "CMessage.CopyFrom"),
            ("<slot wrapper '__init__' of 'object' objects>", "object.__init__"),
            ("<built-in method __new__ of type object at 0x7f2b3c4d5e6f>", "__new__"),
            ("<bound thing at 0x7f2b3c4d5e6f>", "<bound thing>"),
            ("<built-in method >", profile.NAMELESS),
            # As the tracer is told of them.
            ("list.append", "list.append"),
            ("PyCapsule.TFE_Py_Execute", "TFE_Py_Execute"),
            ("pybind11_detail_function_record_v1_abi_1002.unflatten", "unflatten"),
            ("PyCapsule.", profile.NAMELESS),
        ):
            self.assertEqual(profile.c_name(text), name)

    def test_a_method_bears_its_class_and_an_inner_function_its_outer(self):
        file, line, name = places().of(Model.predict.__code__)
        self.assertEqual((file, name), ("test_profile.py", "Model.predict"))
        self.assertEqual(line, Model.predict.__code__.co_firstlineno)
        inner = [code for code in places.__code__.co_consts + traced.__code__.co_consts if isinstance(code, types.CodeType)]
        for code in inner:
            self.assertIn(".<locals>.", places().of(code)[2])

    def test_a_wrapper_does_not_bear_the_name_of_what_it_wraps(self):
        def wrapper():
            return leaf()

        wrapper.__name__, wrapper.__qualname__ = "leaf", "leaf"
        self.assertTrue(places().of(wrapper.__code__)[2].endswith("wrapper"))

    def test_files_are_told_without_the_folders_of_this_machine(self):
        own, scratch = places(), profile.tempfile.gettempdir()
        package = os.path.dirname(os.path.dirname(os.path.abspath(profile.__file__)))
        self.assertEqual(own.file(os.path.join(package, "workloads", "compat.py")), "workloads/compat.py")
        self.assertEqual(own.file(__file__), "test_profile.py")
        self.assertEqual(own.file(os.__file__), "os.py")
        self.assertEqual(own.file(numpy.__file__), os.path.join("numpy", "__init__.py"))
        self.assertEqual(own.file(os.path.join(scratch, "tmp8zq1.py")), profile.GENERATED)
        self.assertEqual(own.file("/somewhere/else/helper.py"), "helper.py")
        self.assertEqual(own.file("<string>"), "<string>")


class Sums(unittest.TestCase):
    def setUp(self):
        start, later = cProfile.Profile(subcalls=False), cProfile.Profile(subcalls=False)
        profile._timed(leaf, start)
        for _ in range(5):
            profile._timed(twice, later)
        spent = [profile.spent_by_cprofile(one) for one in (start, later)]
        self.functions = {one["name"]: one for one in profile.functions(spent[0], spent[1], places())}

    def test_calls_are_counted_apart_until_the_third_call_and_after_it(self):
        counted = {name: (one["start"]["calls"], one["later"]["calls"]) for name, one in self.functions.items()}
        self.assertEqual((counted["leaf"], counted["twice"], counted["sum"]), ((1, 10), (0, 5), (1, 10)))

    def test_what_a_function_calls_is_in_its_cumulative_time_and_not_in_its_own(self):
        leaf_spent, twice_spent = (self.functions[name]["later"] for name in ("leaf", "twice"))
        self.assertGreaterEqual(twice_spent["cumulative_ns"], twice_spent["own_ns"] + leaf_spent["own_ns"])

    def test_the_profiler_and_what_calls_the_step_are_not_in_it(self):
        self.assertNotIn("_outermost", self.functions)
        self.assertFalse([name for name in self.functions if "Profiler" in name])

    def test_functions_that_are_made_anew_in_each_call_are_one(self):
        def makes():
            scope = {}
            exec(compile("def made(): pass\nmade()", "/nowhere/made.py", "exec"), scope)

        later = cProfile.Profile(subcalls=False)
        for _ in range(4):
            profile._timed(makes, later)
        found = profile.functions([], profile.spent_by_cprofile(later), places())
        self.assertEqual([one["later"]["calls"] for one in found if one["name"] == "made"], [4])


class Traced(unittest.TestCase):
    def setUp(self):
        # One call that waits for a CPU makes all others a small share of the time.
        self.addCleanup(setattr, profile, "FOLD_BELOW", profile.FOLD_BELOW)
        profile.FOLD_BELOW = 0

    def test_a_stack_is_told_from_the_step_to_what_takes_the_time(self):
        named = stacks(traced(Model().predict))
        leaves = [stack for stack in named if stack[-2:] == ("leaf", "sum")]
        self.assertEqual(len(leaves), 1)
        self.assertEqual(leaves[0][0], "Model.predict")

    def test_it_sees_neither_itself_nor_what_calls_the_step(self):
        named = stacks(traced(twice))
        self.assertEqual({stack[0] for stack in named}, {"twice", "to_host"})
        self.assertEqual({name for stack in named for name in stack} & {"enable", "disable", "_outermost"}, set())

    def test_it_counts_as_cprofile_does(self):
        later = cProfile.Profile(subcalls=False)
        for _ in range(3):
            profile._timed(lambda: countdown(4), later)
        tree = traced(lambda: countdown(4))
        spent = {code.co_name: rest for code, *rest in profile.spent_by_cprofile(later) if not isinstance(code, str)}
        for code, count, own_s, cumulative_s in tree.spent():
            if not isinstance(code, str) and code.co_name in ("countdown", "leaf", "<lambda>"):
                self.assertEqual(count, spent[code.co_name][0], code.co_name)
                self.assertGreaterEqual(cumulative_s, own_s)
        # A recursion's time counts once.
        totals = {code.co_name: cumulative for code, _, _, cumulative in tree.spent() if not isinstance(code, str)}
        self.assertGreaterEqual(totals["<lambda>"], totals["countdown"])
        self.assertGreaterEqual(totals["countdown"], totals["leaf"])

    def test_an_exception_that_passes_through_leaves_the_stack_in_order(self):
        def fails():
            raise KeyError("on purpose")

        def step():
            for _ in range(3):
                try:
                    fails()
                except KeyError:
                    leaf()

        stacks_of = stacks(traced(step))
        self.assertFalse([stack for stack in stacks_of if "leaf" in stack and "fails" in "".join(stack)])

    def test_a_return_from_a_c_function_without_its_call_is_passed_over(self):
        tree, frame = untold(), sys._getframe()
        for event, arg in (("call", None), ("c_call", len), ("c_return", len), ("c_return", len), ("c_return", sum)):
            tree._watch(frame, event, arg)
        self.assertEqual(tree.keys, [None, id(frame.f_code)])
        tree._watch(frame, "return", None)
        self.assertEqual(tree.keys, [None])

    def test_a_return_ends_all_that_was_called_in_between(self):
        tree, frame = untold(), sys._getframe()
        for event, arg in (("call", None), ("c_call", len), ("return", None)):
            tree._watch(frame, event, arg)
        self.assertEqual(tree.keys, [None])

    def test_a_stack_beyond_the_bounds_counts_as_its_callers_time(self):
        deepest, profile.DEEPEST = profile.DEEPEST, 20
        try:
            tree = traced(lambda: countdown(100))
        finally:
            profile.DEEPEST = deepest
        self.assertEqual(max(map(len, stacks(tree))), 19)
        self.assertLess(calls(tree)["countdown"], 303)

    def test_a_tree_beyond_the_bounds_grows_no_further(self):
        most, profile.MOST_NODES = profile.MOST_NODES, 5
        try:
            tree = traced(lambda: countdown(100))
        finally:
            profile.MOST_NODES = most
        self.assertLessEqual(len(stacks(tree)), 5)

    def test_a_branch_below_a_share_of_all_is_folded_into_its_caller_and_no_time_is_lost(self):
        fold, profile.FOLD_BELOW = profile.FOLD_BELOW, 0.5
        try:
            tree = traced(lambda: (countdown(300), leaf()))
            folded = stacks(tree)
        finally:
            profile.FOLD_BELOW = fold
        whole = stacks(tree)
        self.assertLess(len(folded), len(whole))
        self.assertLess(abs(sum(whole.values()) - sum(folded.values())), 0.2 * sum(whole.values()))


if __name__ == "__main__":
    unittest.main()

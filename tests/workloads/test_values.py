"""What is pulled to the host."""

import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("values need numpy")

from workloads import values


class Tensor:
    """What is left of a tensor when its value is taken away: symbolic."""

    dtype = "float32"
    shape = ()


class EagerTensor(Tensor):
    def numpy(self):
        return numpy.float32(2.5)


class ToHost(unittest.TestCase):
    def test_a_tensor_becomes_its_value(self):
        self.assertEqual(values.to_host(EagerTensor()), 2.5)

    def test_a_tensor_of_another_backend_becomes_its_value(self):
        class OfTorch(Tensor):
            """Part of a graph of gradients until it is detached; numpy has no such floats."""

            def __init__(self, dtype="torch.bfloat16", is_free=False):
                self.dtype, self.is_free = dtype, is_free

            def detach(self):
                return OfTorch(self.dtype, True)

            def cpu(self):
                return self

            def float(self):
                return OfTorch("torch.float32", self.is_free)

            def numpy(self):
                assert self.is_free and self.dtype == "torch.float32"
                return numpy.float32(1.5)

        class OfJax(Tensor):
            def block_until_ready(self):
                return self

            def __array__(self, dtype=None, copy=None):
                return numpy.ones(2)

        self.assertEqual(values.to_host([OfTorch(), OfTorch("torch.float32")]), [1.5, 1.5])
        self.assertEqual(values.to_host(OfJax()).tolist(), [1.0, 1.0])

    def test_only_a_result_without_a_tensor_is_on_the_host_already(self):
        for value in (None, 1.0, "text", numpy.ones(2), [1.0, {"loss": [0.5]}], object(), []):
            self.assertTrue(values.is_on_host(value), value)
        deep = [EagerTensor()]
        for _ in range(10):
            deep = [deep]
        loop = []
        loop.append(loop)
        for value in (EagerTensor(), [1.0, EagerTensor()], {"loss": (EagerTensor(),)}, deep, loop):
            self.assertFalse(values.is_on_host(value), type(value))

    def test_tensors_are_found_in_lists_tuples_and_dicts(self):
        self.assertEqual(values.to_host({"a": [EagerTensor(), (EagerTensor(), None)]}), {"a": [2.5, (2.5, None)]})

    def test_what_is_ragged_or_sparse_is_pulled_in_parts(self):
        class Ragged:
            flat_values, nested_row_splits = EagerTensor(), (EagerTensor(), EagerTensor())

        class Sparse:
            indices, values, dense_shape = EagerTensor(), EagerTensor(), None

        self.assertEqual(values.to_host(Ragged()), [2.5, 2.5, 2.5])
        self.assertEqual(values.to_host(Sparse()), [2.5, 2.5, None])

    def test_what_is_on_the_host_is_left_alone(self):
        array = numpy.ones(3)
        history = object()
        for value in (None, 1.5, 3, True, "text", array, numpy.float64(2), history):
            self.assertIs(values.to_host(value), value)

    def test_a_container_is_pulled_down_to_a_depth_and_not_into_itself(self):
        nest = [EagerTensor()]
        nest += [nest, {"again": nest}]
        number, again, inner = values.to_host(nest)
        self.assertEqual(number, 2.5)
        for left in (again, inner["again"]):
            self.assertIsInstance(left, values.DeepNest)
        for depth, kind in ((values.MOST_DEPTH, numpy.float32), (values.MOST_DEPTH + 1, values.DeepNest)):
            pulled = values.to_host(self.nest(EagerTensor(), depth - 1))
            for _ in range(depth - 1):
                [pulled] = pulled
            self.assertIsInstance(pulled, kind)
        self.assertEqual(values.describe(values.to_host(nest)), "(float32[], DeepNest, dict)")

    def test_the_same_container_may_be_in_a_result_twice(self):
        part = [EagerTensor()]
        self.assertEqual(values.to_host([part, (part, part)]), [[2.5], ([2.5], [2.5])])

    def nest(self, value, depth):
        for _ in range(depth):
            value = [value]
        return value

    def test_a_symbolic_tensor_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "no value"):
            values.to_host([Tensor()])


if __name__ == "__main__":
    unittest.main()

"""What is pulled to the host."""

import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("values need numpy")

from workloads import values


class Tensor(object):
    """What is left of a tensor when its value is taken away: symbolic."""

    dtype = "float32"
    shape = ()


class EagerTensor(Tensor):
    def numpy(self):
        return numpy.float32(2.5)


class ToHost(unittest.TestCase):
    def test_a_tensor_becomes_its_value(self):
        self.assertEqual(values.to_host(EagerTensor()), 2.5)

    def test_tensors_are_found_in_lists_tuples_and_dicts(self):
        self.assertEqual(values.to_host({"a": [EagerTensor(), (EagerTensor(), None)]}), {"a": [2.5, (2.5, None)]})

    def test_what_is_ragged_or_sparse_is_pulled_in_parts(self):
        class Ragged(object):
            flat_values, nested_row_splits = EagerTensor(), (EagerTensor(), EagerTensor())

        class Sparse(object):
            indices, values, dense_shape = EagerTensor(), EagerTensor(), None

        self.assertEqual(values.to_host(Ragged()), [2.5, 2.5, 2.5])
        self.assertEqual(values.to_host(Sparse()), [2.5, 2.5, None])

    def test_what_is_on_the_host_is_left_alone(self):
        array = numpy.ones(3)
        history = object()
        for value in (None, 1.5, 3, True, "text", array, numpy.float64(2), history):
            self.assertIs(values.to_host(value), value)

    def test_a_symbolic_tensor_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "no value"):
            values.to_host([Tensor()])


if __name__ == "__main__":
    unittest.main()

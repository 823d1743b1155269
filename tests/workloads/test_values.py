"""What is pulled to the host, and which results a digest tells apart."""

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


class Checksum(unittest.TestCase):
    def setUp(self):
        self.array = numpy.random.RandomState(0).randn(50, 40)

    def test_it_is_a_short_hex_string_that_no_platform_changes(self):
        self.assertEqual(values.checksum(self.array), "9e74294876b1")
        self.assertEqual(values.checksum(numpy.arange(6)), "740bb301d79e")

    def test_rounding_errors_do_not_show(self):
        noise = 1 + 1e-7 * numpy.random.RandomState(1).randn(50, 40)
        self.assertEqual(values.checksum(self.array), values.checksum(self.array * noise))
        self.assertEqual(values.checksum(self.array), values.checksum(self.array.astype("float32")))

    def test_another_value_shape_sign_or_order_shows(self):
        sums = [
            values.checksum(value)
            for value in (self.array, self.array * 1.01, -self.array, self.array.T, self.array[::-1], self.array.ravel())
        ]
        self.assertEqual(len(set(sums)), len(sums))

    def test_scalars_count_to_four_digits(self):
        self.assertEqual(values.checksum(0.59736705), values.checksum(numpy.float32(0.59736687)))
        self.assertNotEqual(values.checksum(0.5973), values.checksum(0.5983))
        self.assertNotEqual(values.checksum(0.5), values.checksum(-0.5))

    def test_integers_count_exactly(self):
        big = numpy.array([10**9, 1])
        self.assertNotEqual(values.checksum(big), values.checksum(big + [1, 0]))
        self.assertEqual(values.checksum(big), values.checksum(big.astype("int32")))

    def test_nan_and_infinity_are_values_like_others(self):
        arrays = [numpy.array([1.0, odd]) for odd in (0.0, numpy.nan, numpy.inf, -numpy.inf)]
        sums = [values.checksum(array) for array in arrays]
        self.assertEqual(len(set(sums)), 4)
        self.assertEqual(sums[1], values.checksum(arrays[1].copy()))
        self.assertIsNotNone(values.checksum(numpy.array([numpy.nan])))

    def test_zero_has_no_sign(self):
        self.assertEqual(values.checksum(0.0), values.checksum(-0.0))
        self.assertEqual(values.checksum(numpy.zeros(3)), values.checksum(-numpy.zeros(3)))

    def test_empty_half_precision_and_complex_arrays_have_one(self):
        for value in (numpy.zeros((0, 3)), numpy.ones(3, "float16"), numpy.array([1 + 2j])):
            self.assertIsNotNone(values.checksum(value))
        self.assertNotEqual(values.checksum(1 + 2j), values.checksum(1 - 2j))

    def test_it_sees_every_number_in_nested_output(self):
        self.assertNotEqual(values.checksum({"loss": [1.0, 2.0]}), values.checksum({"loss": [1.0, 3.0]}))
        self.assertEqual(values.checksum({"a": 1.0, "b": 2.0}), values.checksum({"b": 2.0, "a": 1.0}))

    def test_output_without_numbers_has_none(self):
        for value in (None, "text", [], [None, "text"], object()):
            self.assertIsNone(values.checksum(value))


if __name__ == "__main__":
    unittest.main()

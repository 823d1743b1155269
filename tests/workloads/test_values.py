"""What is pulled to the host, and which results a digest tells apart."""

import json
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


class Sketch(unittest.TestCase):
    def parts(self, value):
        return json.loads(values.sketch(value))["parts"]

    def test_a_short_array_is_kept_whole_and_a_long_one_by_the_same_places(self):
        [short], [long] = self.parts(numpy.float32([0.1, 2])), self.parts(numpy.arange(10.0 ** 5))
        self.assertEqual((short["type"], short["shape"], short["values"]), ("float32", [2], [0.100000001, 2.0]))
        self.assertEqual((len(long["values"]), long["values"][0], long["values"][-1]), (256, 0.0, 99999.0))
        self.assertAlmostEqual(long["mean"], 49999.5)

    def test_moments_of_huge_values_are_finite(self):
        [part] = self.parts(numpy.array([1e308, 1e308, numpy.nan, numpy.inf, -numpy.inf, -numpy.inf]))
        self.assertEqual(part["odd"], [1, 1, 2])
        self.assertAlmostEqual(part["mean"] / 1e308, 1.0)
        self.assertAlmostEqual(part["rms"] / 1e308, 1.0)
        self.assertEqual(part["values"][2:], ["nan", "inf", "-inf", "-inf"])

    def test_blocks_add_up_to_the_whole(self):
        array = numpy.random.RandomState(0).randn(3 * values.BLOCK + 7)
        [part] = self.parts(array)
        self.assertAlmostEqual(part["mean"], float(array.mean()))
        self.assertAlmostEqual(part["rms"], float(numpy.sqrt((array ** 2).mean())))

    def test_parts_are_named_by_where_they_are(self):
        named = [part["name"] for part in self.parts({"b": [1, {"c": 2.5}], "a": True, "none": [], "n": None})]
        self.assertEqual(named, ["a", "b.0", "b.1.c", "n", "none"])

    def test_it_stays_small(self):
        told = json.loads(values.sketch([numpy.random.randn(1000) for _ in range(100)]))
        self.assertEqual((len(told["parts"]), told["left_out"]), (values.MOST_PARTS, 100 - values.MOST_PARTS))
        self.assertEqual({len(part["values"]) for part in told["parts"]}, {values.MOST_VALUES // values.MOST_PARTS})

    def test_what_has_no_numbers_is_named_by_its_type_and_ends_nothing(self):
        odd = (None, object(), "text", b"bytes", {1, 2}, numpy.array(["a"]), numpy.array([object()]), 10 ** 400,
               numpy.array(["2020-01-01"], "datetime64[D]"), numpy.zeros((0, 3)), numpy.uint64(2 ** 64 - 1))
        for value in odd:
            self.assertEqual(len(self.parts(value)), 1)
        self.assertIsNotNone(self.parts("text")[0]["digest"])
        self.assertIsNone(self.parts(object())[0]["digest"])


if __name__ == "__main__":
    unittest.main()

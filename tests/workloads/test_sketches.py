"""What a sketch keeps of a result: all of it in sums and digests, and a few values as they are."""

import json
import tracemalloc
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("sketches need numpy")

from workloads import sketches
from workloads.sketches import sketch

MIB = 2**20


def read(value):
    return json.loads(sketch(value))


def draw(*shape):
    return numpy.random.RandomState(0).randn(*shape)


class Values(unittest.TestCase):
    def one(self, value):
        [part] = read(value)["parts"]
        return part

    def test_a_short_array_is_kept_whole_and_a_long_one_by_the_same_places(self):
        short, long, again = (
            self.one(numpy.float32([0.1, 2])),
            self.one(numpy.arange(10.0**5)),
            self.one(numpy.arange(10.0**5)),
        )
        self.assertEqual((short["type"], short["shape"], short["values"]), ("float32", [2], [0.100000001, 2.0]))
        self.assertEqual((len(long["values"]), long["values"]), (sketches.MOST_VALUES, sorted(long["values"])))
        self.assertEqual(long, again)

    def test_another_layout_of_the_same_numbers_is_the_same(self):
        array = draw(300, 70)
        for other in (
            numpy.asfortranarray(array),
            array.T.copy().T,
            numpy.repeat(array, 2, axis=0)[::2],
            array.astype(">f8"),
        ):
            self.assertEqual(dict(self.one(other), type=""), dict(self.one(array), type=""))

    def test_equal_numbers_of_another_type_have_the_same_digest(self):
        halves = numpy.float16([0.5, -0.0, numpy.nan, 3])
        digests = {self.one(each)["digest"] for each in (halves, halves.astype("f4"), halves.astype("f8"), halves + 0)}
        self.assertEqual(len(digests), 1)

    def test_each_value_is_in_the_digest_and_in_each_sum(self):
        for array in (draw(40), draw(3 * sketches.BLOCK + 7), draw(5 * sketches.BLOCK) + 1j, numpy.arange(70000)):
            old = self.one(array)
            for place in (0, array.size // 3, array.size - 1):
                changed = array.copy()
                changed[place] += 3
                new = self.one(changed)
                self.assertNotEqual(new["digest"], old["digest"])
                [mine], [theirs] = old["bands"], new["bands"]
                unit = 2.0 ** (mine["level"] - theirs["level"])
                steps = [
                    abs(one * unit - other) * 2.0 ** theirs["level"] for one, other in zip(mine["sums"], theirs["sums"])
                ]
                for step in steps:
                    self.assertAlmostEqual(step, 3.0, places=6)

    def test_sums_have_the_size_of_the_norm(self):
        array = draw(200000)
        [band] = self.one(array)["bands"]
        estimate = float(numpy.mean(numpy.square(band["sums"]))) ** 0.5
        self.assertTrue(0.5 < estimate / band["norm"] < 2)
        self.assertAlmostEqual(band["norm"] * 2.0 ** band["level"], float(numpy.linalg.norm(array)), places=6)

    def test_a_mask_has_separate_sums(self):
        array = draw(8, 128)
        masked = array.copy()
        masked[:, 100:] = -1e9
        below, mask = self.one(masked)["bands"]
        self.assertEqual((below["count"], mask["count"]), (800, 224))
        self.assertAlmostEqual(below["norm"] * 2.0 ** below["level"], float(numpy.linalg.norm(array[:, :100])))
        self.assertEqual(self.one(masked)["typical"], float(numpy.sort(abs(array[:, :100].ravel()))[400]))
        # Also if most of a result is masked.
        masked[:, 10:] = -1e9
        self.assertTrue(0.1 < self.one(masked)["typical"] < 2)

    def test_nothing_overflows(self):
        with numpy.errstate(all="raise", under="ignore"):
            part = self.one(numpy.array([1e308, 1e308, -1.7e308, numpy.nan, numpy.inf, -numpy.inf, -numpy.inf, 1e-320]))
            many = self.one(numpy.full(50000, 1.7e308))
        self.assertEqual((part["odd"], part["values"][3:7]), ([1, 1, 2], ["nan", "inf", "-inf", "-inf"]))
        self.assertTrue(all(abs(each) <= 50000 for each in many["bands"][0]["sums"]))

    def test_places_of_nan_count(self):
        arrays = [numpy.zeros(70000) for _ in range(3)]
        for array, place in zip(arrays, (5, 6, 5 + sketches.BLOCK)):
            array[place] = numpy.nan
        self.assertEqual(len({self.one(array)["places"] for array in arrays}), 3)

    def test_whole_numbers_count_exactly(self):
        large = numpy.uint64([2**63 + 1, 2**64 - 1])
        self.assertEqual(self.one(large)["values"], [2**63 + 1, 2**64 - 1])
        self.assertNotEqual(self.one(large)["digest"], self.one(large - numpy.uint64([1, 0]))["digest"])
        self.assertNotEqual(self.one(10**400)["digest"], self.one(10**400 + 1)["digest"])

    def test_old_and_new_numpy_draw_the_same_signs(self):
        [band] = self.one(numpy.arange(10000.0))["bands"]
        sums = [each * 2.0 ** band["level"] for each in band["sums"][:4]]
        self.assertEqual(sums, [49578.0, -175284.0, 356882.0, 174806.0])

    def test_a_large_array_takes_little_memory(self):
        for array in (numpy.ones(256 * MIB // 8), numpy.ones((2 * MIB, 4)).T):
            tracemalloc.start()
            try:
                sketch({"one": array, "other": [array[:1]] * 3})
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            self.assertLess(peak, 32 * MIB)


class Parts(unittest.TestCase):
    def test_parts_are_named_by_where_they_are(self):
        named = [part["name"] for part in read({"b": [1, {"c": 2.5}], "a": True, "none": [], "n": None})["parts"]]
        self.assertEqual(named, ["a", "b.0", "b.1.c", "n", "none"])

    def test_no_part_is_left_out(self):
        parts = [draw(40) for _ in range(100)] + [7, "text", None, numpy.float32(1)]
        kept = read(parts)
        self.assertEqual((len(kept["parts"]), kept["others"]["count"]), (sketches.MOST_PARTS, 104 - sketches.MOST_PARTS))
        self.assertLess(len(sketch(parts)), 2**15)
        for place, other in ((16, draw(40) + 1), (99, -draw(40)), (100, 8), (101, "another"), (102, ()), (103, 2.0)):
            changed = parts[:place] + [other] + parts[place + 1 :]
            self.assertNotEqual(read(changed)["others"], kept["others"])
        self.assertNotEqual(read(parts[:50] + [draw(8, 5)] + parts[51:])["others"]["forms"], kept["others"]["forms"])

    def test_many_numbers_in_a_list_are_one_part(self):
        [part] = read([0.5] * 1000)["parts"]
        self.assertEqual((part["type"], part["shape"]), ("float", [1000]))

    def test_what_has_no_value_is_named_by_its_type_and_is_not_consumed(self):
        def count():
            yield 1
            yield 2

        class Loud:
            def __iter__(self):
                raise RuntimeError("it was iterated")

            __array__ = __len__ = __float__ = __iter__

        generator, file = count(), iter([3, 4])
        for value in (generator, file, Loud(), {1, 2}, len, numpy.array([(1, 2.0)], [("a", "i4"), ("b", "f8")])):
            [_, part] = read([1.5, value])["parts"]
            self.assertIsNone(part["digest"], part)
        self.assertEqual((list(generator), list(file)), ([1, 2], [3, 4]))

    def test_a_nest_ends_at_a_depth_and_does_not_go_into_itself(self):
        nest, array, deep = {"one": 1.5}, numpy.array([1.5, None], object), 1.5
        nest["two"], array[1] = [nest, nest], array
        for _ in range(10000):
            deep = (deep,)
        for value, digests in ((nest, [True, False, False]), (array, [True, False]), (deep, [False])):
            parts = read(value)["parts"]
            self.assertEqual([part["digest"] is not None for part in parts], digests)
            self.assertEqual({part["type"] for part in parts if part["digest"] is None}, {"DeepNest"})

    def test_texts_and_odd_arrays_have_digests(self):
        values = [
            "a",
            "b",
            b"a",
            None,
            [],
            numpy.array(["a", "b"]),
            numpy.array(["ab", ""]),
            numpy.array([b"a", b"b"], object),
            numpy.array(["2020-01-01"], "datetime64[D]"),
            numpy.zeros((0, 3)),
            numpy.longdouble(1) / 3,
            numpy.array([None, 1.5]),
        ]
        kept = [read(value)["parts"] for value in values]
        self.assertTrue(all(part["digest"] for parts in kept for part in parts))
        self.assertEqual(len({json.dumps(parts) for parts in kept}), len(values))

    def test_a_type_that_numpy_only_stores_is_read_by_its_floats(self):
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            self.skipTest("needs ml_dtypes")
        [part] = read(numpy.array([1.5, 2], bfloat16))["parts"]
        self.assertEqual((part["type"], part["values"]), ("bfloat16", [1.5, 2.0]))


if __name__ == "__main__":
    unittest.main()

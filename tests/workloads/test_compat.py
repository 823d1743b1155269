"""What compat promises without a TensorFlow: versions and refusals."""

import os
import types
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("compat needs numpy")

from workloads import compat


def tensorflow(version):
    """A stand-in that knows its version and nothing else: whoever touches more of it fails."""
    return types.SimpleNamespace(__version__=version)


class Installed:
    """Pretends that standalone keras of some version (or none) is installed."""

    def __init__(self, keras):
        self.keras = keras

    def __enter__(self):
        self.real, compat._installed = compat._installed, lambda name: self.keras

    def __exit__(self, *error):
        compat._installed = self.real


class Version(unittest.TestCase):
    def test_a_release_is_three_numbers(self):
        self.assertEqual(compat.version(tensorflow("2.13.1")), (2, 13, 1))

    def test_what_follows_the_numbers_is_left_out(self):
        for text in ("2.16.0-rc1", "2.16.0rc1", "2.16.0-dev20240101", "2.16.0+nv24.1", "2.16"):
            self.assertEqual(compat.version(tensorflow(text)), (2, 16, 0), text)

    def test_versions_compare_as_numbers_not_as_text(self):
        self.assertLess(compat.version(tensorflow("2.9.0")), compat.version(tensorflow("2.13.0")))

    def test_something_else_is_not_taken_for_a_version(self):
        with self.assertRaises(ValueError):
            compat.version(tensorflow("unknown"))


class Keras3(unittest.TestCase):
    def setUp(self):
        self.before = os.environ.pop("TF_USE_LEGACY_KERAS", None)

    def tearDown(self):
        os.environ.pop("TF_USE_LEGACY_KERAS", None)
        if self.before is not None:
            os.environ["TF_USE_LEGACY_KERAS"] = self.before

    def test_it_comes_with_tensorflow_2_16(self):
        self.assertFalse(compat.keras_is_3(tensorflow("2.15.1")))
        self.assertTrue(compat.keras_is_3(tensorflow("2.16.1")))

    def test_it_stays_away_where_the_legacy_keras_is_asked_for(self):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        self.assertFalse(compat.keras_is_3(tensorflow("2.16.1")))

    def test_it_refuses_graph_mode_with_its_reason(self):
        self.assertIn("Keras 3", compat.mode_refusal(tensorflow("2.20.0"), "graph"))
        self.assertIsNone(compat.mode_refusal(tensorflow("2.20.0"), "eager"))

    def test_switching_to_a_refused_mode_raises_the_reason(self):
        with self.assertRaisesRegex(compat.Refused, "no graph mode"):
            compat.use_mode(tensorflow("2.20.0"), "graph")


class Refusals(unittest.TestCase):
    def test_tf_keras_runs_in_both_modes_before_keras_3(self):
        for version in ("1.14.0", "2.0.0", "2.13.0"):
            for mode in ("eager", "graph"):
                self.assertIsNone(compat.keras_refusal(tensorflow(version), "tf.keras", mode), (version, mode))

    def test_standalone_keras_is_refused_in_eager_mode_by_tensorflow_1_only(self):
        with Installed("2.2.5"):
            self.assertIn("eager", compat.keras_refusal(tensorflow("1.14.0"), "keras", "eager"))
            self.assertIsNone(compat.keras_refusal(tensorflow("1.14.0"), "keras", "graph"))
        with Installed("2.3.1"):
            self.assertIsNone(compat.keras_refusal(tensorflow("2.0.0"), "keras", "eager"))
            self.assertIsNone(compat.keras_refusal(tensorflow("2.0.0"), "keras", "graph"))

    def test_standalone_keras_is_refused_where_it_is_tf_keras_itself(self):
        with Installed("2.13.1"):
            self.assertIn("same package", compat.keras_refusal(tensorflow("2.13.0"), "keras", "eager"))

    def test_standalone_keras_is_refused_where_it_only_forwards(self):
        with Installed("2.4.3"):
            self.assertIn("forwards", compat.keras_refusal(tensorflow("2.4.0"), "keras", "eager"))

    def test_standalone_keras_is_refused_where_it_is_not_installed(self):
        with Installed(None):
            self.assertIn("not installed", compat.keras_refusal(tensorflow("2.0.0"), "keras", "eager"))

    def test_standalone_keras_takes_no_datasets(self):
        with Installed("2.3.1"):
            self.assertIn("2.3.1", compat.dataset_refusal(tensorflow("2.0.0"), "keras"))
            self.assertIsNone(compat.dataset_refusal(tensorflow("2.0.0"), "tf.keras"))

    def test_keras_3_beside_a_legacy_tf_keras_is_a_keras_of_its_own(self):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        try:
            with Installed("3.5.0"):
                self.assertIsNone(compat.keras_refusal(tensorflow("2.16.1"), "keras", "eager"))
                self.assertIsNone(compat.dataset_refusal(tensorflow("2.16.1"), "keras"))
                self.assertIn("Keras 3", compat.keras_refusal(tensorflow("2.16.1"), "keras", "graph"))
                self.assertIsNone(compat.keras_refusal(tensorflow("2.16.1"), "tf.keras", "graph"))
        finally:
            del os.environ["TF_USE_LEGACY_KERAS"]

    def test_functions_are_compiled_from_2_1_on(self):
        self.assertIn("jit", compat.jit_refusal(tensorflow("2.0.0")))
        self.assertIsNone(compat.jit_refusal(tensorflow("2.1.0")))

    def test_functions_of_integer_matrices_are_compiled_from_2_5_on(self):
        for version in ("1.14.0", "2.0.0"):
            self.assertEqual(compat.integer_jit_refusal(tensorflow(version)), compat.jit_refusal(tensorflow(version)))
        self.assertIn("integers", compat.integer_jit_refusal(tensorflow("2.4.4")))
        self.assertIsNone(compat.integer_jit_refusal(tensorflow("2.5.0")))

    def test_calling_a_model_is_refused_in_tensorflow_1_only(self):
        self.assertIn("graph", compat.direct_call_refusal(tensorflow("1.14.0")))
        self.assertIsNone(compat.direct_call_refusal(tensorflow("2.0.0")))

    def test_an_unknown_name_is_an_error_not_a_refusal(self):
        with self.assertRaises(ValueError):
            compat.mode_refusal(tensorflow("2.0.0"), "lazy")
        with self.assertRaises(ValueError):
            compat.keras_refusal(tensorflow("2.0.0"), "torch", "eager")


class Functions(unittest.TestCase):
    def switches(self, version, jit):
        tf = tensorflow(version)
        tf.function = lambda fn, **switches: switches
        return compat.function(tf, None, jit)

    def test_the_jit_switch_has_the_name_of_its_time(self):
        self.assertEqual(self.switches("2.13.0", True), {"jit_compile": True})
        self.assertEqual(self.switches("2.4.0", True), {"experimental_compile": True})

    def test_without_a_choice_the_switch_is_left_alone(self):
        for version in ("1.14.0", "2.4.0", "2.13.0"):
            self.assertEqual(self.switches(version, None), {})

    def test_not_compiling_needs_no_switch(self):
        self.assertEqual(self.switches("2.0.0", False), {})

    def test_compiling_without_a_switch_is_refused(self):
        with self.assertRaises(compat.Refused):
            self.switches("2.0.0", True)


class Adam(unittest.TestCase):
    class Old:
        def __init__(self, lr=0.001, **kwargs):
            self.rate = lr

    class New:
        def __init__(self, learning_rate=0.001, **kwargs):
            self.rate = learning_rate

    class Legacy(New):
        pass

    def keras(self, **optimizers):
        return types.SimpleNamespace(optimizers=types.SimpleNamespace(**optimizers))

    def test_the_rate_reaches_it_under_either_name(self):
        for adam in (self.Old, self.New):
            self.assertEqual(compat.adam(self.keras(Adam=adam), 0.5, "graph").rate, 0.5)

    def test_graph_mode_takes_the_legacy_one_where_there_is_one(self):
        keras = self.keras(Adam=self.New, legacy=types.SimpleNamespace(Adam=self.Legacy))
        self.assertIsInstance(compat.adam(keras, 0.5, "graph"), self.Legacy)
        self.assertNotIsInstance(compat.adam(keras, 0.5, "eager"), self.Legacy)


class ModelInput(unittest.TestCase):
    def dtype(self, version):
        tf = tensorflow(version)
        tf.keras = types.SimpleNamespace(backend=types.SimpleNamespace(floatx=lambda: "float32"))
        return compat.model_input(tf, numpy.zeros(3)).dtype

    def test_it_is_cast_where_models_do_not(self):
        self.assertEqual(self.dtype("1.14.0"), numpy.float32)
        self.assertEqual(self.dtype("2.0.0"), numpy.float64)


class FixedWeights(unittest.TestCase):
    class Model:
        def __init__(self, *shapes):
            self.weights = [numpy.ones(shape, "float32") for shape in shapes]

        def get_weights(self):
            return self.weights

        def set_weights(self, weights):
            self.weights = weights

    def test_they_are_the_same_every_time(self):
        models = [self.Model((3, 4), (5, 4, 2)) for _ in range(2)]
        for model in models:
            compat.fix_weights(model, 1)
        for one, other in zip(models[0].weights, models[1].weights):
            numpy.testing.assert_array_equal(one, other)
            self.assertEqual(one.dtype, numpy.float32)
            self.assertGreater(one.std(), 0)

    def test_vectors_stay_as_they_were(self):
        model = self.Model((4,))
        compat.fix_weights(model, 1)
        numpy.testing.assert_array_equal(model.weights[0], numpy.ones(4))


class Threads(unittest.TestCase):
    def setUp(self):
        self.before = dict(os.environ)

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.before)

    def test_thread_counts_and_memory_growth_reach_the_environment(self):
        pools = []
        threading = types.SimpleNamespace(
            set_inter_op_parallelism_threads=pools.append, set_intra_op_parallelism_threads=pools.append
        )
        tf = types.SimpleNamespace(config=types.SimpleNamespace(threading=threading))
        compat.set_threads(tf, 1, 2)
        compat.grow_memory(None)
        self.assertEqual(pools, [1, 2])
        self.assertEqual(os.environ["TF_NUM_INTEROP_THREADS"], "1")
        self.assertEqual(os.environ["TF_NUM_INTRAOP_THREADS"], "2")
        self.assertEqual(os.environ["TF_FORCE_GPU_ALLOW_GROWTH"], "true")

    def test_a_tensorflow_before_1_14_states_no_threads(self):
        self.assertEqual(compat.threads(tensorflow("1.13.2")), [])


class Gpus(unittest.TestCase):
    """What TensorFlow tells of its GPUs, in the words of each of its times."""

    def test_a_new_tensorflow_tells_name_and_capability(self):
        details = [{"device_name": "NVIDIA H100", "compute_capability": (9, 0)}, {}]
        config = types.SimpleNamespace(
            list_physical_devices=lambda kind: list(range(len(details))), get_device_details=lambda gpu: details[gpu]
        )
        tf = types.SimpleNamespace(__version__="2.13.0", config=types.SimpleNamespace(experimental=config))
        self.assertEqual(compat.gpus(tf), [{"name": "NVIDIA H100", "capability": "9.0"}, {"name": "", "capability": ""}])

    def test_an_old_tensorflow_tells_a_sentence(self):
        sentence = "device: 0, name: Tesla V100-SXM2-16GB, pci bus id: 0000:00:1e.0, compute capability: 7.0"
        self.assertEqual(compat._described(sentence), {"name": "Tesla V100-SXM2-16GB", "capability": "7.0"})
        self.assertEqual(compat._described("something else"), {"name": "", "capability": ""})


if __name__ == "__main__":
    unittest.main()

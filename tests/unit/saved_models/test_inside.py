"""What a version does to save and load: its inputs, its arguments, and what it says of an error."""

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import pytest

from workloads import compat
from workloads.saving import formats, task
from workloads.saving.models import MODELS


def spec(dtype: str, *shape: int | None) -> Namespace:
    def fits(found: tuple[int, ...]) -> bool:
        return len(found) == len(shape) and all(a in (None, b) for a, b in zip(shape, found, strict=True))

    kind = Namespace(name=dtype, is_integer="int" in dtype)
    return Namespace(dtype=kind, shape=_Shape(shape, fits))


class _Shape(tuple[Any, ...]):
    def __new__(cls, sizes: tuple[int | None, ...], fits: Any) -> "_Shape":
        shape = super().__new__(cls, sizes)
        shape.is_compatible_with = fits  # type: ignore[attr-defined]
        return shape


def test_equal_shapes_get_equal_values_whatever_their_names():
    one = Namespace(inputs=[spec("float32", None, 4), spec("int64", None, 2)])
    other = Namespace(inputs=[spec("int64", None, 2), spec("float32", None, 4)])
    first, second = formats.derive_inputs(None, one), formats.derive_inputs(None, other)
    assert np.array_equal(first[0], second[1])
    assert np.array_equal(first[1], second[0])
    assert first[0].shape == (formats.ROWS, 4)


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", "f"), ("float16", "f"), ("int32", "i"), ("bool", "b"), ("string", "U")]
)
def test_an_input_has_the_type_that_the_model_declares(dtype: str, kind: str):
    found = formats.derive_inputs(None, Namespace(inputs=[spec(dtype, None, None)]))
    assert (found.dtype.kind, found.shape) == (kind, (formats.ROWS, formats.OPEN))


def test_a_model_without_inputs_is_refused_with_the_remedy():
    with pytest.raises(compat.Refused, match=r"define inputs\(tf\)"):
        formats.derive_inputs(None, Namespace())


def bind(specs: dict[str, Namespace], inputs: Any) -> dict[str, Any]:
    served = formats.Served.__new__(formats.Served)
    served.specs, served.tf = specs, Namespace(constant=lambda array, dtype: array)
    return served._bind(inputs)


def test_a_served_model_gets_its_arguments_by_name_or_by_what_fits():
    floats, words = np.ones((3, 4), "float32"), np.full((3, 1), "a")
    specs = {"x": spec("float32", None, 4), "y": spec("string", None, 1)}
    for inputs in ({"x": floats, "y": words}, {"b": floats, "a": words}, [words, floats]):
        bound = bind(specs, inputs)
        assert bound["x"] is floats or np.array_equal(bound["x"], floats)
        assert bound["y"].dtype.kind == "U"
    with pytest.raises(LookupError, match="no input fits the argument x"):
        bind({"x": spec("float32", None, 5)}, floats)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unknown layer: 'Scale'. Please ensure you are using a scope.", "Scale"),
        ("Unknown loss function: Weighted. Please ensure", "Weighted"),
        ("Could not locate class 'Scale'. Make sure custom classes are decorated", "Scale"),
        ("Could not deserialize class 'Net' because its parent module mine cannot be imported.", "Net"),
        # These are Keras' own, in another release.
        ("Could not locate class 'LSTM'. Make sure", ""),
        ("Could not deserialize class 'Functional' because its parent module keras.src cannot be imported.", ""),
        ("Unrecognized keyword arguments: ['batch_shape']", ""),
    ],
)
def test_only_a_custom_object_that_is_missing_is_named(message: str, name: str):
    keras = Namespace(layers=Namespace(LSTM=None))
    assert task._find_custom(Namespace(keras=keras), message, "") == name


def test_a_custom_object_is_found_in_the_file_if_the_message_does_not_name_it(tmp_path: Path):
    layers = [{"class_name": "Dense", "registered_name": None}, {"class_name": "Scale", "registered_name": "Scale"}]
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as file:
        file.writestr("config.json", json.dumps({"config": {"layers": layers}}))
    tf = Namespace(keras=Namespace(layers=Namespace(Dense=None)))
    assert task._find_custom(tf, task.NAMELESS, str(tmp_path / "model.keras")) == "Scale"
    assert task._find_custom(tf, task.NAMELESS, str(tmp_path / "absent.keras")) == ""


@pytest.mark.parametrize(
    ("keras", "saving", "loading"),
    [
        ("2.8.0", {"keras", "export"}, {"keras"}),
        ("2.13.1", set(), set()),
        ("3.4.1", {"savedmodel"}, {"savedmodel"}),
    ],
)
def test_a_version_refuses_the_formats_that_it_does_not_have(keras: str, saving: set[str], loading: set[str]):
    tf = Namespace(keras=Namespace(__version__=keras), __version__="2.16.0" if keras[0] == "3" else "2.13.0")
    assert {name for name in formats.SUFFIXES if formats.refuse_saving(tf, name)} == saving
    assert {name for name in formats.SUFFIXES if formats.refuse_loading(tf, name)} == loading


def test_every_model_has_inputs_of_a_few_kilobytes():
    for model in MODELS.values():
        arrays = formats.flatten(model.inputs(None))
        assert arrays
        assert sum(array.nbytes for array in arrays) < 4096


@pytest.mark.parametrize("kind", ["keras", "h5", "weights"])
def test_what_keras_unpacks_beside_a_file_reaches_no_other_process(tmp_path: Path, kind: str):
    saved = Path(formats.find_path(str(tmp_path), "dense", kind))
    saved.write_bytes(b"weights")
    seen = []

    def load(path: str, custom_objects: Any = None) -> str:
        (Path(path).parent / "model.weights.h5").touch()
        seen.append((Path(path).name, Path(path).read_bytes()))
        return "loaded"

    tf = Namespace(keras=Namespace(models=Namespace(load_model=load)))
    formats.load(tf, str(saved), kind, {}, lambda: Namespace(load_weights=load))
    assert seen == [(saved.name, b"weights")]
    assert list(tmp_path.iterdir()) == [saved]

"""What a workload needs: packages of a layer, data in their place, and parameters as it declares them."""

import json
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.engines.worker.client import Opened, Refused
from tests.support.bench import Bench


@pytest.fixture
def layered(tmp_path: Path):
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "plots.py").write_text("NUMBER = 2\n")
    (layer / "numpy.py").write_text("raise ImportError('the layer comes last')\n")
    layers = {"plotting": {"folder": str(layer)}, "impossible": {"refused": "it requires more than there is"}}
    bench = Bench(tmp_path, own={contract.LAYERS: json.dumps(layers)})
    bench.hello()
    yield bench
    bench.channel.close()


def test_a_layer_is_for_its_own_workload_alone(layered: Bench):
    source = "import plots, numpy\ndef build(tf, params): return lambda: numpy.float64(plots.NUMBER)\n"
    layered.workload("plotting", source)
    layered.workload("other", source)
    assert isinstance(layered.open("plotting")[1], Opened)
    _, answer = layered.open("other")
    assert "No module named 'plots'" in answer.reason
    assert "import" in answer.reason


def test_what_cannot_be_had_is_a_refusal(layered: Bench):
    layered.workload("impossible", "raise RuntimeError('not even imported')\n")
    assert layered.open("impossible")[1] == Refused("it requires more than there is")


def test_numbers_of_params_stay_numbers(veteran: Bench):
    veteran.workload(
        "declared",
        """
        PARAMS = {"size": (64, 512), "rate": (0.5, 1), "name": ("64",)}

        def build(tf, params):
            assert params == {"size": 512, "rate": 0.5, "name": "64", "more": "7"}, params
            assert [type(value) for value in params.values()] == [int, float, str, str]
            return lambda: 1
        """,
    )
    _, answer = veteran.open("declared", {"size": "512", "rate": "0.5", "name": "64", "more": "7"})
    assert isinstance(answer, Opened), answer


def test_data_are_found_where_the_copy_of_the_folder_has_them(veteran: Bench):
    source = """
        import os

        DATA = {"images": "/nowhere/at/all"}

        def build(tf, params):
            with open(os.path.join(DATA["images"], "one.txt")) as text:
                assert text.read() == "seen"
            return lambda: 1
        """
    veteran.workload("seeing", source)
    place = veteran.workloads / contract.DATA / "seeing" / "images"
    place.mkdir(parents=True)
    (place / "one.txt").write_text("seen")
    assert isinstance(veteran.open("seeing")[1], Opened)
    veteran.workload("blind", source)
    assert "/nowhere/at/all" in veteran.open("blind")[1].reason

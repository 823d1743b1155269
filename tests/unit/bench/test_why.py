"""What the bench of causes counts as right, and the wheels that it patches."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from bench import why
from bench.why import INJECTED, Asked
from tests.support.packages import wheel

KERAS, SLOW = "Keras 3.8.0 -> 3.8.0.post1", "SLOW none -> 1"
ONE = Asked("a", "b", "c", (KERAS,))
ANSWERS = [
    (ONE, [[KERAS]], True),
    (ONE, [], False),
    (ONE, [[SLOW]], False),
    (ONE, [[KERAS], [SLOW]], False),
    (ONE, [[KERAS, SLOW]], False),
    (replace(ONE, causes=(SLOW, KERAS)), [[KERAS], [SLOW]], True),
    (replace(ONE, causes=()), [], True),
    (replace(ONE, causes=()), [[SLOW]], False),
    (replace(ONE, causes=("TensorFlow ...",)), [["TensorFlow 2.14.1 -> 2.15.1"]], True),
    (replace(ONE, causes=("TensorFlow ...",)), [["TensorFlow 2.14.1 -> 2.15.1"], [SLOW]], False),
]


@pytest.mark.parametrize(("asked", "named", "is_right"), ANSWERS)
def test_only_exactly_the_causes_are_right(asked: Asked, named: list[list[str]], is_right: bool):
    assert why.is_right(asked, {"named": named, "died": False}) == is_right
    assert not why.is_right(asked, {"named": named, "died": True})


def test_each_injected_cause_is_a_question_of_its_own():
    assert len(INJECTED) == 12
    assert sum(not asked.causes for asked in INJECTED.values()) == 2
    assert len({(asked.old, asked.new, asked.is_busy) for asked in INJECTED.values()}) == 12


def test_a_patched_wheel_has_its_number_and_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wheel(tmp_path, "numpy", "2.1.3", "NUMBER = 1\n")
    monkeypatch.setattr(why, "WHEELS", {"2.1.3.post1": ("numpy", "numpy.py", "NUMBER = 2\n")})
    why.patch_wheels(tmp_path)
    with zipfile.ZipFile(tmp_path / "numpy-2.1.3.post1-py3-none-any.whl") as patched:
        assert patched.read("numpy.py") == b"NUMBER = 1\nNUMBER = 2\n"
        assert b"Version: 2.1.3.post1" in patched.read("numpy-2.1.3.post1.dist-info/METADATA")
        assert "numpy-2.1.3.post1.dist-info/RECORD,," in patched.read("numpy-2.1.3.post1.dist-info/RECORD").decode()

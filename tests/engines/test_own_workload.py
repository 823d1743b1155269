"""The example of the page on workloads of one's own is run as it stands there."""

import re
from pathlib import Path

from tests.conftest import ROOT
from tests.support.end_to_end import compare, contrast

PAGE = (ROOT / "docs" / "own-workload.md").read_text()


def test_the_documented_example_runs_with_the_documented_command(tfcompare: str, tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [path] = re.findall(r"Save it as `(\S+)`", PAGE)
    [command] = re.findall(r"^    tfcompare run (.*)$", PAGE, re.MULTILINE)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(source)
    assert "import" not in source
    few = ("--engine", "venv", "--rounds", "2", "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, *command.split(), *few, cwd=tmp_path)
    assert code == 0, stderr
    assert len(answer["arms"]) == 4 * 2
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert contrast(answer, "multiply", "case", {"version": "2.13.0"}, size="64")["rounds"] == 2


def test_the_documented_example_refuses_where_it_says_so(tfcompare: str, tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "multiply.py").write_text(source)
    flags = ("--versions", "1.14,2.0", "--workload-dir", tmp_path, "--case", "multiply[size=64]")
    code, answer, stderr = compare(tfcompare, *flags, "--engine", "venv", "--rounds", "2", "--output", tmp_path / "run")
    assert code == 0, stderr
    refused = [arm for arm in answer["arms"] if arm["version"] == "1.14.0"]
    assert {(arm["outcome"], arm["reason"]) for arm in refused} == {
        ("refused", "TensorFlow 1 has no eager mode switched on by default")
    }

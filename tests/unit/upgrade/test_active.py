"""What the active environment has, read from the names of folders: nothing of it is run."""

from pathlib import Path

import pytest

from orchestrator.catalog.active import ActiveTensorFlow
from orchestrator.catalog.freeze import read_freeze
from orchestrator.errors import UsageError
from orchestrator.upgrade.active import freeze_active


def test_packages_become_lines_and_tools_and_folders_are_left_out(tmp_path: Path):
    place = tmp_path / "env" / "lib" / "python3.9" / "site-packages"
    for name in (
        "tensorflow_cpu-2.8.4.dist-info", "numpy-1.22.4.dist-info", "typing_extensions-4.5.0.dist-info",
        "pip-23.0.dist-info", "tfcompare-0.1.0.dist-info", "mine-1.0.dist-info", "odd-notanumber.dist-info",
        "evil -r /etc/passwd-1.0.dist-info", "numpy",
    ):  # fmt: skip
        (place / name).mkdir(parents=True)
    (place / "mine-1.0.dist-info" / "direct_url.json").write_text("{}")
    target = freeze_active(ActiveTensorFlow("2.8.4", tmp_path / "env"), tmp_path / "up")
    file = tmp_path / "up" / "environment.txt"
    assert target == f"freeze={file} py=3.9 as yours"
    assert file.read_text().splitlines() == ["numpy==1.22.4", "tensorflow==2.8.4", "typing-extensions==4.5.0"]
    freeze = read_freeze(file)
    assert (freeze.number, freeze.left_out) == ("2.8.4", ())


def test_an_environment_without_packages_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="name the version that you have"):
        freeze_active(ActiveTensorFlow("2.8.4", tmp_path), tmp_path / "up")

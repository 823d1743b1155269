"""What an atlas may remove: an environment by its name, and no other folder of this machine."""

from pathlib import Path

import pytest

from orchestrator.images import removal


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "environments"
    (folder / "2.13.0-cpu" / "bin").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(removal, "environments_folder", lambda: folder)
    return folder


def test_an_environment_is_removed(cache: Path):
    assert removal.remove_installed("venv", "2.13.0-cpu") == ""
    assert not (cache / "2.13.0-cpu").exists()


@pytest.mark.parametrize("identity", ["../mine", "/etc", "", ".", "..", "a/b"])
def test_no_other_folder_is_removed(cache: Path, identity: str):
    assert "not ours to remove" in removal.remove_installed("venv", identity)
    assert (cache.parent / "mine").is_dir()
    assert (cache / "2.13.0-cpu").is_dir()


@pytest.mark.parametrize("identity", ["tensorflow/tensorflow:latest", "sha256:1", ""])
def test_an_image_is_named_by_its_id(identity: str):
    assert removal.remove_installed("docker", identity).endswith("names no image")

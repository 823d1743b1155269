import pytest

from orchestrator.engines.docker import host_paths


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as in no container, where the engine sees each folder in its place."""
    monkeypatch.setattr(host_paths, "mounts", lambda client: None)
    monkeypatch.setattr(host_paths, "source", lambda path, mounted, *, read_only: path)

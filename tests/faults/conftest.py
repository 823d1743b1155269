from pathlib import Path

import pytest

from tests.support import stub_environments


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environments of three versions whose TensorFlow is the stub; their workers start at once."""
    folder: Path = tmp_path_factory.mktemp("stubs")
    return stub_environments.build(folder / "cache", ("2.0", "2.1", "2.2"))

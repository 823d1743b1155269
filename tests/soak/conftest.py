from pathlib import Path

import pytest

from tests.support import stub_environments


@pytest.fixture(scope="session")
def stub_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("stubs")
    return stub_environments.build(folder / "cache", ("2.0", "2.13"))

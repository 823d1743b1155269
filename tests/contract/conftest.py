from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bench import Bench


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Bench]:
    """A worker of the test's own that nobody has greeted."""
    bench = Bench(tmp_path)
    yield bench
    bench.channel.close()


@pytest.fixture
def bench(fresh: Bench) -> Bench:
    """A worker of the test's own, ready for orders."""
    fresh.hello()
    return fresh


@pytest.fixture(scope="module")
def veteran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One worker for all tests of a file: each leaves it able to measure, or the next fails."""
    bench = Bench(tmp_path_factory.mktemp("veteran"))
    bench.hello()
    yield bench
    bench.channel.close()

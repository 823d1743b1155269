"""Where locks lie is printed wherever they lie."""

from pathlib import Path

from orchestrator.bundled import IMAGES
from tools import lock


def test_a_lock_of_the_users_own_version_is_shown_by_its_whole_path(tmp_path: Path):
    assert lock.shown(IMAGES / "locks" / "2.0.0-cpu-py3.7.txt") == Path("images/locks/2.0.0-cpu-py3.7.txt")
    assert lock.shown(tmp_path / "locks" / "mine.txt") == tmp_path / "locks" / "mine.txt"

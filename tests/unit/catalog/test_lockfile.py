"""A lock is read with its hashes, and what is wrong in one is told with its line."""

from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lockfile
from orchestrator.catalog.lockfile import Pin
from orchestrator.errors import UsageError

A, B = "a" * 64, "b" * 64
LOCK = f"""# Written by: somebody
# inputs: sha256:{A}

absl-py==2.1.0 \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
jax[cpu]==0.4 ; python_version >= '3.9' \\
    --hash=sha256:{A}
six==1.17.0 --hash=sha256:{B}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "lock.txt"
    path.write_text(text)
    return path


def test_a_lock_is_names_numbers_and_hashes(tmp_path: Path):
    assert lockfile.read_lock(written(tmp_path, LOCK)) == (
        Pin("absl-py", "2.1.0", (A, B)),
        Pin("jax", "0.4", (A,)),
        Pin("six", "1.17.0", (B,)),
    )


def test_every_lock_that_is_shipped_can_be_read_and_names_a_tensorflow():
    for path in sorted(catalog.LOCKS.glob("*.txt")):
        names = {pin.name for pin in lockfile.read_lock(path)}
        wanted = {"pip"} if path.name.startswith("pip-") else {"tensorflow", "tensorflow-cpu", "tensorflow-gpu"}
        assert names & wanted, path


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# one\nsix>=1.17.0 --hash=sha256:" + A, 2, "'six>=1.17.0 .*' is no locked requirement"),
        ("six==1.17.0\n", 1, "six has no hash, so any file would do"),
        (f"a==1 --hash=sha256:{A}\n\nsix==1.17.0 \\\n  # why\n", 4, "'#' is no hash"),
        (f"six==1 \\\n  --hash=sha256:{A} \\\n  --hash=sha256:{A[1:]}\n", 3, "is no hash"),
        (f"six==1 \\\n  --hash=md5:{A}\n", 2, "is no hash"),
        ("-r other.txt\n", 1, "is no locked requirement"),
        ("\x00\x01binary", 1, "is no locked requirement"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str):
    with pytest.raises(UsageError, match=rf"lock\.txt, line {line}: .*{words}"):
        lockfile.read_lock(written(tmp_path, text))


def test_a_lock_that_is_not_there_says_what_writes_it(tmp_path: Path):
    with pytest.raises(UsageError, match=r"nowhere\.txt: there is no such lock; .*tools/lock\.py"):
        lockfile.read_lock(tmp_path / "nowhere.txt")


def test_what_a_lock_has_of_a_package_is_removed_and_nothing_of_its_neighbours(tmp_path: Path):
    text = LOCK.replace("six==", f"absl-py-extra==1.0 --hash=sha256:{A}\nsix==")
    without = lockfile.remove_pin(lockfile.remove_pin(text, "absl-py"), "jax")
    assert list(lockfile.list_packages(written(tmp_path, without))) == ["absl-py-extra", "six"]
    assert lockfile.remove_pin(text, "absl") == text

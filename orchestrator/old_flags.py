"""Flags that were renamed: their old names are accepted for one more release, and older runs recorded them."""

from collections.abc import Iterable

RENAMED = {
    "--workload": "--case",
    "--workloads": "--workload-dir",
    "--out": "--output",
    "--more": "--resume",
    "--force": "--allow-unsupported-gpu",
}


def rename(words: Iterable[str]) -> list[str]:
    """Return the words of a command line with today's names of its flags; what follows `--` is left as it is."""
    renamed: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        ours = "--" not in renamed
        renamed.append(f"{RENAMED[flag]}{equals}{value}" if ours and flag in RENAMED else word)
    return renamed

"""Flags, and values of flags, that were renamed.

The old names are accepted for one more release, and older runs recorded them.
"""

from collections.abc import Iterable, Mapping

RENAMED = {
    "--workload": "--case",
    "--workloads": "--workload-dir",
    "--out": "--output",
    "--more": "--resume",
    "--force": "--allow-unsupported-gpu",
}
# `seed` also means where random numbers begin (--seed). Histories keep the names of suites.
RENAMED_SUITES = {"seed": "studies"}
RENAMED_VALUES: Mapping[str, Mapping[str, str]] = {
    "--suite": RENAMED_SUITES,
    "--table": {"seed": "study"},
    "--columns": {"seed": "study", "+seed": "+study"},
}


def rename(words: Iterable[str]) -> list[str]:
    """Return the words of a command line with today's names; what follows `--` is left as it is."""
    renamed: list[str] = []
    for word in words:
        before = renamed[-1] if renamed else ""
        flag, equals, value = word.partition("=")
        if "--" in renamed:
            renamed.append(word)
        elif before in RENAMED_VALUES:
            renamed.append(_rename_values(before, word))
        elif flag.startswith("--"):
            flag = RENAMED.get(flag, flag)
            renamed.append(f"{flag}{equals}{_rename_values(flag, value)}")
        else:
            renamed.append(word)
    return renamed


def _rename_values(flag: str, text: str) -> str:
    """Return a value, or a list of values with commas, with today's names."""
    names = RENAMED_VALUES.get(flag, {})
    return ",".join(names.get(part, part) for part in text.split(","))

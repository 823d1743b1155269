"""Parsers of flags: each function takes a flag's text and returns its value, or raises UsageError."""

import math
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from orchestrator import redact
from orchestrator.catalog.selectors import MARGIN
from orchestrator.errors import UsageError
from orchestrator.metrics import METRICS, NAMES, OUTPUT
from orchestrator.model import Metric
from orchestrator.options import LONGEST_S

# A duration consists of numbers with units, such as 90s, 10min or 1h30m. A number without a unit is ambiguous.
AMOUNT, UNIT = r"\d+(?:\.\d+)?", r"(?:h(?:r|ours?)?|m(?:in(?:utes?)?)?|s(?:ec(?:onds?)?)?)"
DURATION = re.compile(rf"(?:{AMOUNT} ?{UNIT} ?)+")
DURATION_PART = re.compile(rf"({AMOUNT}) ?({UNIT})")
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
MOST_THREADS = 1024
CPUS = re.compile(r"(?P<first>\d{1,4})(-(?P<last>\d{1,4}))?")
SIZE = re.compile(r"(?P<count>\d+(\.\d+)?) ?(?P<unit>m|g)(i?b)?", re.IGNORECASE)
# TensorFlow itself does not fit into less memory.
LEAST_MEMORY_MB, MOST_MEMORY_MB = 512, 2**30
# An error repeats at most this many characters of a value.
LONGEST = 100


def refuse_logins(words: Sequence[str], where: str) -> None:
    for word in words:
        if redact.LOGIN.search(word):
            raise UsageError(f"{redact.mask_login(word)}: {where} must not contain a login; leave it out")


def parse_names(text: str) -> tuple[str, ...]:
    return tuple(re.split(r"[,\s]+", text.strip(", \t\n"))) if text.strip(", \t\n") else ()


def threads(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,5})(?:, ?(\d{1,5}))?", text.strip())
    inter, intra = (int(match[1]), int(match[2] or match[1])) if match else (-1, -1)
    if match is None or max(inter, intra) > MOST_THREADS:
        raise UsageError(f"--threads {text!r}: expected a number up to {MOST_THREADS} or two (inter-op,intra-op)")
    return inter, intra


def seconds(flag: str, text: str) -> float:
    text = text.strip()
    parts = list(DURATION_PART.finditer(text)) if DURATION.fullmatch(text) else []
    value = sum(float(part[1]) * UNITS_S[part[2][0]] for part in parts)
    if re.fullmatch(AMOUNT, text) and float(text):
        raise UsageError(f"{flag} {text!r} has no unit: write {text}m for minutes or {text}s for seconds")
    if value == 0:
        raise UsageError(f"{flag} {text!r} is not a duration; write e.g. 90s, 10m or 1h30m")
    if value > LONGEST_S:
        raise UsageError(f"{flag} {text!r}: at most {LONGEST_S // 86_400} days")
    return value


def shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip(), re.ASCII)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text!r}: expected the number of a part and the number of parts, e.g. 2/5")
    return int(match[1]), int(match[2])


def whole_number(flag: str, text: str, least: int, most: int) -> int:
    number = int(text) if re.fullmatch(r"[+-]?\d{1,12}", text.strip()) else None
    if number is None or not least <= number <= most:
        raise UsageError(f"{flag} {text!r}: expected a whole number from {least} to {most}")
    return number


def budget(text: str | None) -> float | None:
    return seconds("--budget", text) if text else None


class Margins(NamedTuple):
    """The margins of times and of the metrics that were named."""

    share: float
    of_metrics: dict[Metric, float]


def margin(text: str) -> Margins:
    """Parse a percentage for times, and margins of metrics by their names, as in `2.5%,leak=4KiB`."""
    share = MARGIN
    of_metrics: dict[Metric, float] = {}
    for part in text.split(","):
        name, _, amount = part.rpartition("=")
        if (name.strip() and name.strip() not in NAMES) or name.strip() == OUTPUT:
            known = ", ".join(name for name in NAMES if name != OUTPUT)
            raise UsageError(f"--margin {text!r}: no metric {name.strip()!r} has a margin; these have one: {known}")
        spec = METRICS[name.strip() or "time"]
        value = spec.parse_amount(amount)
        if value is None or not 0 < value < (1 if spec.units is None else math.inf):
            wanted = f"an amount such as {spec.units.example}" if spec.units else "a percentage between 0 and 100"
            of = f": {spec.name} needs {wanted}" if name else f": expected {wanted}, e.g. 2.5% or 5%,leak=4KiB"
            raise UsageError(f"--margin {text!r}{of}")
        if spec.name == "time":
            share = value
        else:
            of_metrics[spec.name] = value
    return Margins(share, of_metrics)


def cpus(text: str) -> tuple[int, ...]:
    """Parse CPUs in the kernel's notation, like 0,2-3."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = CPUS.fullmatch(part.strip())
        first, last = (int(match["first"]), int(match["last"] or match["first"])) if match else (1, 0)
        if first > last:
            raise UsageError(f"--cpuset {text!r}: expected CPU numbers and ranges, e.g. 0,2-3")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def memory_mb(text: str) -> int:
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--memory {text!r}: expected a size, e.g. 900m, 4g or 4GiB")
    megabytes = float(match["count"]) * {"m": 1, "g": 1024}[match["unit"].lower()]
    if megabytes > MOST_MEMORY_MB:
        raise UsageError(f"--memory {text[:LONGEST]!r}: at most {MOST_MEMORY_MB // 2**20} TiB")
    size = int(megabytes)
    if size < LEAST_MEMORY_MB:
        raise UsageError(f"--memory {text!r}: TensorFlow alone takes more; at least {LEAST_MEMORY_MB}m")
    return size


def one_of(flag: str, noun: str, text: str, values: Collection[str]) -> str:
    if text not in values:
        # This reads the table of versions, which a correct value does not need.
        from orchestrator.catalog import did_you_mean

        raise UsageError(
            f"{flag}: unknown {noun} {text!r}{did_you_mean(text, values)}; choose from {', '.join(values)}"
        )
    return text


def check_targets(texts: Sequence[str]) -> None:
    """Raise UsageError for a text that is not a target, or whose version does not exist."""
    from orchestrator.catalog import targets

    changed = [targets.parse_target(text) for text in texts if not targets.is_plain(text)]
    check_versions([*filter(targets.is_plain, texts), *(each.version for each in changed if each.version)])


def check_versions(names: Sequence[str]) -> None:
    """Raise UsageError for a version that is in no table and cannot be locked on first use."""
    from orchestrator import catalog

    for name in names:
        if not (catalog.EXACT.fullmatch(name) or catalog.NIGHTLY.fullmatch(name)):
            catalog.resolve_versions([name], fewest=1)


def names_file(word: str) -> bool:
    """Return whether a word among targets names the file of a workload or of a program."""
    return word.endswith(".py") and "=" not in word and len(word.split()) == 1


def runtime(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w./-]{0,99}", text):
        raise UsageError(f"--runtime {text!r}: expected a runtime of the engine, such as runsc (see `docker info`)")
    return text

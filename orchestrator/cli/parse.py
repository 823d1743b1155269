"""Parsers of flags: each function takes a flag's text and returns its value, or raises UsageError."""

import re
from collections.abc import Collection, Sequence

from orchestrator import redact
from orchestrator.errors import UsageError
from orchestrator.options import LONGEST_S

DURATION = re.compile(r"(?P<count>\d+(\.\d+)?)(?P<unit>s|m|h)?")
MOST_THREADS = 1024
CPUS = re.compile(r"(?P<first>\d{1,4})(-(?P<last>\d{1,4}))?")
SIZE = re.compile(r"(?P<count>\d+(\.\d+)?)(?P<unit>m|g)b?", re.IGNORECASE)
# Less does not hold TensorFlow itself.
LEAST_MEMORY_MB = 512


def refuse_logins(words: Sequence[str], where: str) -> None:
    for word in words:
        if redact.LOGIN.search(word):
            raise UsageError(f"{redact.mask_login(word)}: {where} must not contain a login; leave it out")


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def threads(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,5}),(\d{1,5})", text)
    if match is None or max(int(match[1]), int(match[2])) > MOST_THREADS:
        raise UsageError(f"--threads {text!r}: two numbers up to {MOST_THREADS}, inter-op and intra-op, e.g. 1,2")
    return int(match[1]), int(match[2])


def seconds(flag: str, text: str) -> float:
    match = DURATION.fullmatch(text.strip())
    if match is None or float(match["count"]) == 0:
        raise UsageError(f"{flag} {text!r}: a duration, e.g. 90s, 10m or 1h")
    value = float(match["count"]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match["unit"]]
    if value > LONGEST_S:
        raise UsageError(f"{flag} {text!r}: at most {LONGEST_S // 86_400} days")
    return value


def budget(text: str | None) -> float | None:
    return seconds("--budget", text) if text else None


def margin(percent: float) -> float:
    if not 0 < percent < 100:
        raise UsageError(f"--margin {percent}: a percentage between 0 and 100")
    return percent / 100


def cpus(text: str) -> tuple[int, ...]:
    """Parse CPUs in the kernel's notation, like 0,2-3."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = CPUS.fullmatch(part.strip())
        first, last = (int(match["first"]), int(match["last"] or match["first"])) if match else (1, 0)
        if first > last:
            raise UsageError(f"--cpuset {text!r}: numbers of CPUs and ranges of them, e.g. 0,2-3")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def memory_mb(text: str) -> int:
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--memory {text!r}: a size, e.g. 900m or 4g")
    size = int(float(match["count"]) * {"m": 1, "g": 1024}[match["unit"].lower()])
    if size < LEAST_MEMORY_MB:
        raise UsageError(f"--memory {text!r}: TensorFlow alone takes more; at least {LEAST_MEMORY_MB}m")
    return size


def one_of(flag: str, noun: str, text: str, values: Collection[str]) -> str:
    if text not in values:
        # It reads the table of versions, which no right value needs.
        from orchestrator.catalog import did_you_mean

        raise UsageError(f"{flag}: unknown {noun} {text!r}{did_you_mean(text, values)}; it is {', '.join(values)}")
    return text


def check_versions(names: Sequence[str]) -> None:
    """Raise UsageError for a version that is in no table and cannot be locked on first use."""
    from orchestrator import catalog

    for name in names:
        if not (catalog.EXACT.fullmatch(name) or catalog.NIGHTLY.fullmatch(name)):
            catalog.resolve([name], fewest=1)

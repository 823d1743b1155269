"""Targets crossed with releases of packages: `--vary keras=3.5,3.8` makes two targets of each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from packaging.utils import canonicalize_name
from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.catalog import targets
from orchestrator.catalog.package_index import list_final_releases
from orchestrator.catalog.targets import TENSORFLOWS, Changed
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import UsageError

# More targets take days, and none of them would have enough of the allowed error.
MOST_TARGETS = 64
LONGEST_SHOWN = 80
ADVICE = "write PACKAGE=VERSION,VERSION,..., such as keras=3.5,3.8 or keras=3.5..3.8"
VARIED = re.compile(r"(?P<package>[A-Za-z0-9][\w.-]*?)=(?P<values>[^=].*)")
VALUE = re.compile(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)?")


def cross(texts: Sequence[str], varied: Sequence[str], device: FlavourName) -> tuple[str, ...]:
    """Return every target with every combination of the varied releases; the first of each is the baseline's."""
    if not varied:
        return tuple(texts)
    plain = [each for text in texts for each in _split(text)]
    if not plain:
        raise UsageError("--vary crosses targets with releases of a package: name a version, such as 2.20")
    python = _find_python(plain[0], device)
    pins = [list(_read_varied(text, python)) for text in varied]
    if nothing := next((text for text, of_package in zip(varied, pins, strict=True) if not of_package), None):
        raise UsageError(f"--vary {nothing[:LONGEST_SHOWN]!r}: it names no release; {ADVICE}")
    packages = [canonicalize_name(each[0].partition("==")[0]) for each in pins]
    if twice := next((name for name in packages if packages.count(name) > 1), None):
        raise UsageError(f"--vary names {twice} twice: write all of its releases behind one {twice}=")
    crossed = [
        replace(changed, pins=_pin(changed, of_target), name=_extend_name(changed.name, of_target))
        for changed in plain
        for of_target in product(*pins)
    ]
    if len(crossed) > MOST_TARGETS:
        raise UsageError(f"--vary makes {len(crossed)} targets; at most {MOST_TARGETS} are measured in one run")
    return tuple(map(str, crossed))


def _pin(changed: Changed, pins: Sequence[str]) -> tuple[str, ...]:
    """Return the pins of a target with further ones; those of a target without TensorFlow replace its own."""
    varied = set(map(targets.name_pinned, pins)) if changed.backend else set()
    return (*(pin for pin in changed.pins if targets.name_pinned(pin) not in varied), *pins)


def _split(text: str) -> Iterator[Changed]:
    """Yield the targets of a text, each with the number of its version, as far as a table has it."""
    if not targets.is_plain(text):
        yield targets.parse_target(text)
    elif catalog.EXACT.fullmatch(text) or catalog.NIGHTLY.fullmatch(text):
        yield Changed(version=text)
    else:
        for version in catalog.resolve_versions([text], 1):
            yield Changed(version=version.short_name if version.build else version.number)


def _find_python(changed: Changed, device: FlavourName) -> str:
    """Return the Python for which the releases of a range are looked up: that of the first target."""
    version = catalog.find_version(changed.version)
    flavours = version.on(device) if version else ()
    usual = flavours or catalog.releases()[-1].on("cpu")
    return changed.python or usual[0].python.number


def _read_varied(text: str, python: str) -> Iterator[str]:
    """Yield the pins that a `--vary` asks for, in its order."""
    shown = f"--vary {text[:LONGEST_SHOWN]!r}"
    match = VARIED.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{shown}: {ADVICE}")
    package = match["package"]
    if canonicalize_name(package) in TENSORFLOWS:
        raise UsageError(f"{shown}: the version of a target is its TensorFlow; name several with --versions")
    for value in filter(None, (value.strip() for value in match["values"].split(","))):
        first, dots, last = value.partition("..")
        if not VALUE.fullmatch(first) or (dots and not VALUE.fullmatch(last)):
            raise UsageError(f"{shown}: {value!r} is no release; {ADVICE}")
        if not dots:
            yield f"{package}=={_complete(first)}"
            continue
        low, high = Number(first), Number(last)
        if low > high:
            raise UsageError(f"{shown}: {value} runs backwards: write {last}..{first}")
        inside = [number for number in list_final_releases(package, python) if low <= Number(number) <= high]
        if not inside:
            raise UsageError(
                f"{shown}: the index has no release of {package} from {first} to {last} for Python {python}"
            )
        yield from (f"{package}=={number}" for number in inside)


def _complete(number: str) -> str:
    """Return the number of a release in full: 3.8 means 3.8.0."""
    return f"{number}.0" if re.fullmatch(r"\d+\.\d+", number) else number


def _extend_name(name: str, pins: Sequence[str]) -> str:
    return "-".join((name, *(pin.replace("==", "-") for pin in pins))) if name else ""

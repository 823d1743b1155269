"""A check that docs/environment.md and docs/nightly.md name the variables that are read, and no others."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = re.compile(r"TFCOMPARE_[A-Z_]+[A-Z]")
# The services of docker-compose.yml set it themselves.
OF_SERVICES = {"TFCOMPARE_DEVICE"}


def wrong_variables() -> Iterator[str]:
    """Yield a sentence for each variable that is read and not described, or described and not read."""
    page = _names(ROOT / "docs" / "environment.md")
    read = _names(*(ROOT / "orchestrator").rglob("*.py"))
    of_compose = _names(ROOT / "docker-compose.yml") - OF_SERVICES
    yield from (f"docs/environment.md lacks {name}, which tfcompare reads" for name in sorted(read - page))
    yield from (f"docs/environment.md has {name}, which nothing reads" for name in sorted(page - read))
    of_nights = page | _names(ROOT / "docs" / "nightly.md")
    yield from (f"docs/nightly.md lacks {name} of docker-compose.yml" for name in sorted(of_compose - of_nights))


def _names(*paths: Path) -> set[str]:
    return {name for path in paths for name in OURS.findall(path.read_text())}

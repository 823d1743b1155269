"""`python -m bench [PART...]`: runs every benchmark, or those named, and writes their parts of docs/benchmarks.md.

Keep the machine otherwise idle while it runs. With --tiny, those that take long measure next to nothing and are only
printed: so one sees whether they work.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import (
    alarms,
    bodies,
    busy,
    detect,
    fleet,
    images,
    isolation,
    load,
    metrics,
    other_nights,
    overhead,
    peers,
    repeated,
    report,
    site,
    workers,
)
from orchestrator.machine.host import host_facts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks of tfcompare itself

Written by `make bench`; no figure by hand. Each part names its day and its machine."""
FACTS = ("cpu", "usable_cores", "smt", "virtual", "memory_mb", "governor", "turbo", "kernel", "load")
Measure = Callable[[], str]
PARTS: Mapping[str, tuple[str, Measure]] = {
    "detect": ("Detection", detect.section),
    "busy": ("A busy core", busy.section),
    "bodies": ("Other people's code", bodies.section),
    "workers": ("Workers", workers.section),
    "metrics": ("Other metrics", metrics.section),
    "overhead": ("Overhead", overhead.section),
    "images": ("Images", images.section),
    "isolation": ("Isolation", isolation.section),
    "peers": ("Peers", peers.section),
    "fleet": ("Fleet", fleet.section),
    "report": ("Reports", report.section),
    "load": ("Load", load.section),
    "site": ("Site", site.section),
    "alarms": ("Alarms", alarms.section),
    "other_nights": ("Alarms on other nights", other_nights.section),
    "repeated": ("Repeated steps", repeated.section),
}
TINY: Mapping[str, Measure] = {
    "detect": partial(detect.section, detect.TINY),
    "busy": partial(busy.section, busy.TINY),
    "bodies": partial(bodies.section, bodies.TINY),
    "workers": partial(workers.section, workers.TINY),
    "fleet": partial(fleet.section, fleet.TINY),
    "load": partial(load.section, load.TINY),
    "metrics": partial(metrics.section, metrics.TINY),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    parser.add_argument("--tiny", action="store_true", help="measure next to nothing, and print it")
    given = parser.parse_args()
    parts: Mapping[str, object] = TINY if given.tiny else PARTS
    asked = given.parts or list(parts)
    if unknown := sorted(set(asked) - set(parts)):
        sys.exit(f"no bench named {', '.join(unknown)}; there are {', '.join(parts)}")
    if given.tiny:
        for name in asked:
            print(TINY[name]())
        return
    for name in asked:
        title, measure = PARTS[name]
        made = stamp(name)
        body = measure()
        # Written at once: what follows may take an hour, or fail.
        write({**kept(), title: f"{made}\n\n{body}"})
    print(PAGE.read_text())


def stamp(name: str) -> str:
    host = host_facts()
    facts = ", ".join(f"{fact} {host[fact]}" for fact in FACTS if host[fact] is not None)
    return f"`make bench ARGS={name}` on {datetime.now(UTC):%Y-%m-%d}: {facts}."


def kept() -> dict[str, str]:
    """Return the page's current sections, by title."""
    parts = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    return {title: body.strip("\n") for title, _, body in (part.partition("\n") for part in parts)}


def write(sections: dict[str, str]) -> None:
    parts = [f"## {title}\n\n{sections[title]}" for title, _ in PARTS.values() if title in sections]
    PAGE.write_text("\n\n".join([HEAD, *parts]) + "\n")


if __name__ == "__main__":
    main()

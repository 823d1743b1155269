"""`python -m bench [PART...]`: runs every benchmark, or those named, and writes their parts of docs/benchmarks.md.

Keep the machine otherwise idle while it runs.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import alarms, detect, images, isolation, overhead, peers, repeated, report, site
from orchestrator.machine.host import host_facts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks of tfcompare itself

Written by `make bench`; no figure by hand. Each part names its day and its machine."""
FACTS = ("cpu", "usable_cores", "smt", "virtual", "memory_mb", "governor", "turbo", "kernel", "load")
PARTS = {
    "detect": ("Detection", detect.section),
    "overhead": ("Overhead", overhead.section),
    "images": ("Images", images.section),
    "isolation": ("Isolation", isolation.section),
    "peers": ("Peers", peers.section),
    "report": ("Reports", report.section),
    "site": ("Site", site.section),
    "alarms": ("Alarms", alarms.section),
    "repeated": ("Repeated steps", repeated.section),
}


def main() -> None:
    asked = sys.argv[1:] or list(PARTS)
    if unknown := sorted(set(asked) - set(PARTS)):
        sys.exit(f"no bench named {', '.join(unknown)}; there are {', '.join(PARTS)}")
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

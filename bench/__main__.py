"""`python -m bench [PART...]`: runs every benchmark, or those named, and writes their parts of docs/benchmarks.md.

Keep the machine otherwise idle while it runs. At the end it lists the parts that are older than the code they measure;
with --stale it does only that. With --tiny, those that take long measure next to nothing and are only printed: so one
sees whether they work. The parts `examples` and `upgrade` need files that are not in this repository, and say which.
"""

import argparse
import os
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import parts, stale
from bench.figures import table
from bench.git import current_commit, git
from bench.parts import PARTS, Measurement
from orchestrator.machine.host import host_facts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
FACTS = ("cpu", "usable_cores", "smt", "virtual", "memory_mb", "governor", "turbo", "kernel", "load")
# The variable that names the folder of files that a part needs; without it, the part does not run among all.
NEEDED = {"examples": "EXAMPLES", "upgrade": "PROGRAMS"}
TINY = ("detect", "busy", "bodies", "workers", "metrics", "fleet", "load")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    parser.add_argument("--tiny", action="store_true", help="measure next to nothing, and print it")
    parser.add_argument("--stale", action="store_true", help="measure nothing; only list what is out of date")
    given = parser.parse_args()
    known = TINY if given.tiny else tuple(PARTS)
    if unknown := sorted(set(given.parts) - set(known)):
        sys.exit(f"no bench named {', '.join(unknown)}; there are {', '.join(known)}")
    usual = tuple(name for name in known if NEEDED.get(name, "PATH") in os.environ)
    for name in () if given.stale else given.parts or usual:
        module = import_module(f"bench.{name}")
        if given.tiny:
            section = module.section(module.TINY)
            print("\n".join([section.body, "", *table(section.figures)]))
        else:
            print(f"## {PARTS[name].title}\n\n{measure(name, module).page(name)}\n")
    print("\n".join(stale.list_stale()))


def measure(name: str, module: Any) -> parts.Stored:
    """Measure a part, keep it, and write the page at once: what follows may take an hour, or fail."""
    host = host_facts()
    commit = current_commit()
    changes = git("status", "--porcelain", "--", *PARTS[name].code)
    section = module.section()
    measured = Measurement(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine={fact: str(host[fact]) for fact in FACTS if host[fact] is not None},
        commits=section.commits or ((commit,) if commit else ()),
        recorded=True,
        uncommitted=bool(changes),
        body=section.body,
        figures=tuple(section.figures),
    )
    kept = parts.write(name, measured)
    PAGE.write_text(parts.benchmarks_page())
    return kept


if __name__ == "__main__":
    main()

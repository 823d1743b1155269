"""`python -m bench`: runs every bench and writes docs/benchmarks.md. Nothing else may run meanwhile."""

from datetime import UTC, datetime
from pathlib import Path

from bench import overhead
from orchestrator.host import host_facts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
FACTS = ("cpu", "usable_cores", "smt", "virtual", "memory_mb", "governor", "turbo", "kernel", "load")


def main() -> None:
    host = host_facts()
    facts = ", ".join(f"{name} {host[name]}" for name in FACTS if host[name] is not None)
    parts = [
        "# Benchmarks of tfcompare itself",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}; no figure by hand. Machine: {facts}.",
        overhead.section(("1.14", "2.0", "2.13")),
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()

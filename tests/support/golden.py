"""Where the streams of real workers and the histories of earlier releases are."""

from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def stream(name: str) -> Path:
    return GOLDEN / f"{name}.arrow"

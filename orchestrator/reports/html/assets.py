"""The parts of every page: the files next to this one, and what a browser may load and run."""

import base64
import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent


def asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def policy(style: str, *scripts: str) -> str:
    """Return a policy that lets the browser load nothing, and run only what is known here by its digest."""
    digests = " ".join(f"'{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {digests}; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

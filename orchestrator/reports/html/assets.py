"""What all pages share: the style sheet and the script, templates, and the policy of what a browser may load."""

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.reports.html.escape import escape_value

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent


def asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def template_environment(folder: Path) -> "jinja2.Environment":
    """Return an environment in which no value can add markup, change the reading direction or forge a line."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escape_value,
    )
    # Intervals of ratios get a dash; those of differences have signs and the word "to".
    environment.filters["dash"] = lambda text: re.sub(r"(?<=\d)-(?=\d)", "–", text)
    return environment


def policy(style: str, *scripts: str) -> str:
    """Return a policy that lets the browser load nothing, and run only these scripts, named by their digests."""
    digests = " ".join(f"'{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {digests}; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

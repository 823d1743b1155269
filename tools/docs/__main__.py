"""Write the pages of docs/ that repeat what other files state; `--check` reports pages that are out of date.

Either way, a claim whose text gives other figures than its data is an error, and so is a variable that
docs/environment.md lacks or that nothing reads.
"""

import argparse
from pathlib import Path

from bench.parts import benchmarks_page
from orchestrator.catalog import claims, workloads
from tools.docs.atlas_page import PAGE, PICTURE, atlas_page, atlas_picture
from tools.docs.claim_figures import wrong_figures
from tools.docs.claims_page import claims_page
from tools.docs.commands_page import commands_page
from tools.docs.compat_page import compat_page
from tools.docs.gpu_page import gpu_page
from tools.docs.json_page import json_page
from tools.docs.variables import wrong_variables
from tools.docs.verdicts_picture import verdicts_picture
from tools.docs.versions_page import versions_page
from tools.docs.workloads_page import workloads_page

DOCS = Path(__file__).resolve().parents[2] / "docs"

PAGES = {
    "commands.md": commands_page,
    "compat.md": compat_page,
    "json.md": json_page,
    "workloads.md": workloads_page,
    "claims.md": claims_page,
    "versions.md": versions_page,
    "benchmarks.md": benchmarks_page,
    "verdicts.svg": verdicts_picture,
    PAGE: atlas_page,
    PICTURE: atlas_picture,
    "gpu.md": lambda: gpu_page((DOCS / "gpu.md").read_text()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say which pages are stale; exit 1 if any is")
    checking = parser.parse_args().check
    stale = [name for name, page in PAGES.items() if not _is_current(name, page())]
    for name in stale:
        if checking:
            print(f"docs/{name} is stale: run python -m tools.docs")
        else:
            (DOCS / name).write_text(PAGES[name]())
            print(f"docs/{name}")
    known = claims.all_claims(workloads.all_workloads())
    wrong = [*wrong_variables(), *(problem for claim in known.values() for problem in wrong_figures(claim))]
    print("\n".join(wrong), end="\n" if wrong else "")
    raise SystemExit(1 if wrong or (stale and checking) else 0)


def _is_current(name: str, text: str) -> bool:
    path = DOCS / name
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    main()

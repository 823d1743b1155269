"""Which parts of the page are older than the code that they measure, by git."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.git import ROOT, git
from bench.parts import PARTS, STORED, Measurement, Part, read

NO_GIT = "git does not answer for this folder, so nothing says which parts are older than the code they measure."


def list_stale(root: Path = ROOT, stored: Path = STORED, parts: Mapping[str, Part] = PARTS) -> Iterator[str]:
    """Yield a line for each part that is older than its code or was never measured, and one for all others."""
    if git("rev-parse", "HEAD", root=root) is None:
        yield NO_GIT
        return
    current = []
    for name, part in parts.items():
        kept = read(name, stored)
        reason = _reason(kept.now, part, root) if kept else "never measured"
        if reason:
            yield f"{name}: {reason}"
        else:
            current.append(name)
    yield f"current: {', '.join(current) or 'none'}"
    code = {path for part in parts.values() for path in part.code}
    if changed := git("status", "--porcelain", "--", *sorted(code), root=root):
        files = changed.count("\n") + 1
        yield f"Changes to {files} file{'s' if files > 1 else ''} of this code are not committed, and not in this list."


def _reason(measured: Measurement, part: Part, root: Path) -> str:
    """Return why a part is not current, or nothing."""
    log = partial(git, "log", "--format=%h of %as", root=root)
    since = [log(f"{commit}..HEAD", "--", *part.code) for commit in measured.commits]
    if not since:
        return f"measured on {measured.day}, outside of a git clone"
    if None in since:
        return f"measured on {measured.day}, at a commit that this clone does not have"
    lines = max((found.splitlines() for found in since if found is not None), key=len)
    if not lines:
        return ""
    many = f"{len(lines)} commits" if len(lines) > 1 else "1 commit"
    return f"stale: measured on {measured.day}; {many} to its code since, the last {lines[0]}"

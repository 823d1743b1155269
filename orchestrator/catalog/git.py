"""Commits and their files, read by git without running anything that a repository names.

Hooks, filters, attributes and file system monitors of a repository are not used: files are read as they are stored.
Only `mirror` fetches.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator import files

# A repository that takes longer than this is broken.
TIMEOUT_S = 120.0
# The repository of a package may have hundreds of megabytes.
FETCH_S = 1800.0
READING = (
    "--no-replace-objects", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
)  # fmt: skip
# A partial clone would fetch what it lacks, in whichever way its settings say.
NO_SCHEME = "none"
# Other schemes start programs that the address names.
SCHEMES = ("https", "file")
# git's variables could name another repository or another program; a fetch could start one.
QUIET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
MOST_FILES, MOST_MB = 20_000, 100
# This is what git says of a name that it does not know.
NO_COMMIT = "Needed a single revision"
FILE, PROGRAM, LINK = "100644", "100755", "120000"
# No path is longer, and so no link.
LONGEST_LINK = 4096


class GitFailed(Exception):
    """The message of git, or about it."""


@dataclass(frozen=True)
class Entry:
    """A file or link of a commit."""

    mode: str
    digest: str
    size: int
    name: str


def find_commit(folder: Path, ref: str) -> str:
    """Return the commit that a branch, a tag or the beginning of a commit names; raise GitFailed if none."""
    return _run(folder, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()


def find_prefix(folder: Path) -> str:
    """Return where a folder is in its repository; raise GitFailed if it is in none."""
    return os.fsdecode(_run(folder, "rev-parse", "--show-prefix").removesuffix(b"\n"))


def list_commits(folder: Path, first: str, last: str) -> list[str]:
    """Return the commits on the way from one to another, without the first, as merges of a branch count."""
    listed = _run(folder, "rev-list", "--first-parent", "--reverse", f"{first}..{last}", "--")
    return listed.decode().split()


def list_entries(folder: Path, commit: str, prefix: str = "") -> list[Entry]:
    """Return the files and links of a commit in a folder of the repository; submodules are left out."""
    listed = _run(folder, "ls-tree", "-r", "-z", "--long", "--full-tree", f"{commit}:{prefix.rstrip('/')}")
    entries = []
    for line in filter(None, listed.split(b"\0")):
        about, _, name = line.partition(b"\t")
        mode, _, digest, size = about.decode().split()
        if mode in (FILE, PROGRAM, LINK) and not size.isdecimal():
            raise GitFailed(f"{os.fsdecode(name)!a} is missing from the repository: a partial clone lacks it")
        if mode in (FILE, PROGRAM, LINK):
            entries.append(Entry(mode, digest, int(size), os.fsdecode(name)))
    return entries


def extract(folder: Path, commit: str, target: Path, prefix: str = "") -> None:
    """Write the files of a commit into a new folder.

    Raises GitFailed for a commit that is too large or whose names leave the folder. Links are made last, so no file is
    written through one.
    """
    entries = list_entries(folder, commit, prefix)
    if len(entries) > MOST_FILES or sum(entry.size for entry in entries) > MOST_MB * 10**6:
        raise GitFailed(f"it holds more than {MOST_FILES} files or {MOST_MB} MB; keep data out of the repository")
    for entry in entries:
        if {"", ".", ".."} & set(entry.name.split("/")) or (entry.mode == LINK and entry.size > LONGEST_LINK):
            raise GitFailed(f"it has an entry that no file may have: {entry.name!a}")
    target.mkdir()
    links = []
    try:
        for entry, content in _read_blobs(folder, entries):
            path = target / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == LINK:
                links.append((path, content))
                continue
            with path.open("xb") as file:
                file.write(content)
            path.chmod(0o755 if entry.mode == PROGRAM else 0o644)
        for path, content in links:
            os.symlink(content, os.fsencode(path))
    except (OSError, ValueError) as error:
        raise GitFailed(f"its files cannot be written: {error}") from error


def mirror(url: str, folder: Path) -> None:
    """Copy a public repository into a folder, or fetch what is new in it; raise GitFailed if that is not possible."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise GitFailed(f"{scheme} is none of {', '.join(SCHEMES)}")
    try:
        if folder.is_dir():
            every = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            _run(folder, "fetch", "--quiet", "--prune", url, *every, scheme=scheme)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        with files.make_folder_atomically(folder) as made:
            _run(made, "clone", "--quiet", "--bare", "--template=", url, ".", scheme=scheme)
    except OSError as error:
        raise GitFailed(f"{error.filename}: {error.strerror}") from error


def _read_blobs(folder: Path, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
    with _start(folder, "cat-file", "--batch") as process:
        assert process.stdin
        assert process.stdout
        for entry in entries:
            process.stdin.write(f"{entry.digest}\n".encode())
            process.stdin.flush()
            stated = process.stdout.readline().split()
            content = process.stdout.read(entry.size + 1)
            if stated[1:] != [b"blob", b"%d" % entry.size] or len(content) != entry.size + 1:
                raise GitFailed(f"{entry.name!a} is missing from the repository: a partial clone lacks it")
            yield entry, content[:-1]


def _run(folder: Path, *arguments: str, scheme: str = NO_SCHEME) -> bytes:
    timeout_s = TIMEOUT_S if scheme == NO_SCHEME else FETCH_S
    with _start(folder, *arguments, scheme=scheme) as process:
        try:
            printed, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git did not answer within {timeout_s:.0f} s") from error
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines() or [f"git ended with {process.returncode}"]
            raise GitFailed(lines[0].removeprefix("fatal: "))
        return printed


@contextmanager
def _start(folder: Path, *arguments: str, scheme: str = NO_SCHEME) -> Iterator["subprocess.Popen[bytes]"]:
    git = shutil.which("git")
    if git is None:
        raise GitFailed("git is not on PATH: install it")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {**QUIET, "GIT_ALLOW_PROTOCOL": scheme}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [git, *READING, "-C", str(folder), *arguments], env=variables, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield process
        finally:
            process.kill()

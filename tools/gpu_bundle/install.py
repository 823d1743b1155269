"""Install a bundle of `make gpu-bundle`, without a network: `python3 install.py`.

This file travels with the bundle and runs on the machine's own Python, so it uses nothing but Python 3.8.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

CHUNK_BYTES = 2**20
# CUDA's libraries are usually in these folders.
USUAL = ("/usr/local/cuda", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


class Joined(io.RawIOBase):
    """The contents of several files, one after the other."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = [path.open("rb") for path in paths]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while self._files:
            count = self._files[0].readinto(buffer)
            if count:
                return count
            self._files.pop(0).close()
        return 0


def check_parts(folder: Path, hashes: dict[str, str]) -> None:
    """End with a message if a part is missing or differs from the one that was written."""
    for name, expected in sorted(hashes.items()):
        found = hashlib.sha256()
        try:
            with (folder / name).open("rb") as part:
                for chunk in iter(lambda: part.read(CHUNK_BYTES), b""):
                    found.update(chunk)
        except OSError as error:
            sys.exit(f"{name} cannot be read ({error.strerror}): copy all files of the bundle into {folder}")
        if found.hexdigest() != expected:
            sys.exit(f"{name} is not as it was written: copy it again")


def unpack(paths: Iterable[Path], folder: Path) -> None:
    with lzma.open(io.BufferedReader(Joined(paths), CHUNK_BYTES)) as file, tarfile.open(fileobj=file, mode="r|") as tar:
        tar.extractall(folder, filter="data")


def find_library(name: str, folders: Sequence[Path], newer: bool) -> Path | None:
    """Return a library of this machine; with `newer`, one of the next major version is good enough."""
    stem, _, number = name.rpartition(".so.")
    names = [name, *([f"{stem}.so.{int(number) + 1}"] if newer and number.isdigit() else [])]
    return next((path for wanted in names for folder in folders for path in sorted(folder.glob(f"**/{wanted}"))), None)


def link_libraries(environments: Path, left_out: Sequence[str], folders: Sequence[Path], newer: bool) -> list[str]:
    """Link what the bundle left out to the libraries of this machine; return the names of those that it lacks."""
    lacking = set()
    for path in left_out:
        link = environments / path
        library = find_library(link.name, folders, newer)
        if library:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(library.resolve())
        else:
            lacking.add(link.name)
    return sorted(lacking)


def install(bundle: Path, to: Path, folders: Sequence[Path], newer: bool) -> list[str]:
    """Install a bundle into a new folder; return the names of the libraries that this machine lacks."""
    about = json.loads((bundle / "bundle.json").read_text())
    check_parts(bundle, about["parts"])
    unpack([bundle / name for name in sorted(about["parts"])], to)
    lacking = link_libraries(to / about["environments"], about["left_out"], folders, newer)
    host = to / "host"
    subprocess.run([str(to / about["python"]), "-I", "-m", "venv", "--without-pip", str(host)], check=True)
    packages = next(host.glob("lib/python*/site-packages"))
    (packages / "bundle.pth").write_text(f"{to / 'site'}\n{to / 'repository'}\n")
    subprocess.run([str(host / "bin" / "python"), "-I", "-m", "tools.gpu_bundle.settle", str(to)], check=True)
    return lacking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("gpu-check"), help="new folder for everything")
    parser.add_argument(
        "--cuda", type=Path, action="append", default=[], help="folder in or below which CUDA's libraries are"
    )
    parser.add_argument("--newer-cuda", action="store_true", help="take libraries of the next major version as well")
    given = parser.parse_args()
    if not hasattr(tarfile, "data_filter"):
        sys.exit("this Python is too old: take another, or its newest patch release")
    to = given.to.resolve()
    if to.exists():
        sys.exit(f"{to} exists: name a new folder with --to")
    try:
        lacking = install(Path(__file__).resolve().parent, to, [*given.cuda, *map(Path, USUAL)], given.newer_cuda)
    except BaseException:
        shutil.rmtree(to, ignore_errors=True)
        raise
    if lacking:
        sys.exit(f"this machine lacks {', '.join(lacking)}: remove {to}, and name their folder with --cuda")
    print(f"Now run {to / 'check'} --minutes 9")


if __name__ == "__main__":
    main()

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


def find_libraries(left_out: Sequence[str], folders: Sequence[Path], newer: bool) -> dict[str, Path]:
    """Return where this machine has the libraries that the bundle left out; end with a message if it lacks some."""
    if any(Path(path).is_absolute() or ".." in Path(path).parts for path in left_out):
        raise ValueError("a library would be outside of its environment")
    names = sorted({Path(path).name for path in left_out})
    found = {name: find_library(name, folders, newer) for name in names}
    lacking = [name for name, path in found.items() if path is None]
    if lacking:
        sys.exit(f"this machine lacks {', '.join(lacking)}: name their folder with --cuda")
    return {name: path for name, path in found.items() if path}


def install(bundle: Path, to: Path, folders: Sequence[Path], newer: bool) -> None:
    """Install a bundle into a new folder."""
    about = json.loads((bundle / "bundle.json").read_text())
    check_parts(bundle, about["parts"])
    libraries = find_libraries(about["left_out"], folders, newer)
    unpack([bundle / name for name in sorted(about["parts"])], to)
    for path in about["left_out"]:
        link = to / about["environments"] / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(libraries[link.name].resolve())
    host = to / "host"
    subprocess.run([str(to / about["python"]), "-I", "-m", "venv", "--without-pip", str(host)], check=True)
    packages = next(host.glob("lib/python*/site-packages"))
    (packages / "bundle.pth").write_text(f"{to / 'site'}\n{to / 'repository'}\n")
    subprocess.run([str(host / "bin" / "python"), "-I", "-m", "tools.gpu_bundle.settle", str(to)], check=True)


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
        install(Path(__file__).resolve().parent, to, [*given.cuda, *map(Path, USUAL)], given.newer_cuda)
    except Exception as error:
        shutil.rmtree(to, ignore_errors=True)
        sys.exit(f"nothing was installed ({error}): make room, or copy the whole bundle again")
    except BaseException:
        shutil.rmtree(to, ignore_errors=True)
        raise
    print(f"Now run {to / 'check'} --minutes 9")


if __name__ == "__main__":
    main()

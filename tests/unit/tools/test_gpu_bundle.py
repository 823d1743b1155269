"""The bundle of `make gpu-check`: what is left out of libraries, and what is checked where it is installed."""

import hashlib
import importlib.util
import io
import json
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tools.gpu_bundle import device_code, install
from tools.gpu_bundle.device_code import MACHINE_CODE, PTX

Program = tuple[int, int, bytes]


def container(*programs: Program) -> bytes:
    entries = b"".join(
        struct.pack("<HHIQIIHHIIQI", kind, 0x101, 48, len(code), 0, 0, 0, 8, capability, 64, 0, 0) + code
        for kind, capability, code in programs
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def library(path: Path, **sections: bytes) -> Path:
    """Write a library that has nothing but these sections, the names of which begin with a dot here."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, "names"])
    contents = [*sections.values(), names]
    place, headers = 64, [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, content in zip([*sections, "names"], contents, strict=True):
        start = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", start, 1, 0, 0, place, len(content), 0, 0, 1, 0))
        place += len(content)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0, 0, place)
    head += struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    path.write_bytes(head + b"".join(contents) + b"".join(headers))
    return path


KEPT, GONE = b"code that is kept", b"code that is gone"


@pytest.mark.parametrize(
    "programs",
    [
        pytest.param(
            [(MACHINE_CODE, 80, GONE), (MACHINE_CODE, 90, KEPT), (PTX, 90, GONE)], id="machine code of the GPU"
        ),
        pytest.param([(MACHINE_CODE, 86, GONE), (PTX, 70, GONE), (PTX, 80, KEPT)], id="only PTX can be made into it"),
        pytest.param([(MACHINE_CODE, 90, KEPT), (MACHINE_CODE, 100, GONE), (PTX, 100, GONE)], id="newer GPUs as well"),
        pytest.param([(MACHINE_CODE, 100, KEPT), (PTX, 100, KEPT)], id="nothing is for it: all stays"),
        pytest.param([(MACHINE_CODE, 90, KEPT)], id="only code of the GPU"),
        pytest.param([(MACHINE_CODE, 90, KEPT), (MACHINE_CODE, 90, KEPT)], id="two programs of the GPU"),
    ],
)
def test_a_library_keeps_what_the_driver_of_one_gpu_takes(tmp_path: Path, programs: list[Program]):
    before, padding = b"before", bytes(11)
    path = library(tmp_path / "lib.so", **{".text": before, ".nv_fatbin": padding + container(*programs) * 2})
    size = path.stat().st_size
    zeroed = device_code.slim(path, 90)
    gone = sum(code == GONE for _kind, _capability, code in programs)
    content = path.read_bytes()
    assert zeroed == 2 * gone * len(GONE)
    assert content.count(KEPT) == 2 * (len(programs) - gone)
    assert (GONE in content, before in content, len(content)) == (False, True, size)


def test_what_only_linkers_and_debuggers_read_is_left_out(tmp_path: Path):
    linked = container((MACHINE_CODE, 90, GONE))
    path = library(tmp_path / "lib.so", **{"__nv_relfatbin": linked, ".symtab": GONE, ".dynsym": KEPT})
    assert device_code.slim(path, 90) == 2 * len(GONE)
    assert (GONE in path.read_bytes(), KEPT in path.read_bytes()) == (False, True)


def test_code_in_an_unknown_form_is_left_alone(tmp_path: Path):
    strange = bytearray(container((MACHINE_CODE, 80, KEPT), (MACHINE_CODE, 90, KEPT)))
    strange[16 + 4 : 16 + 8] = struct.pack("<I", 7)
    path = library(tmp_path / "lib.so", **{".nv_fatbin": bytes(strange)})
    before = path.read_bytes()
    assert device_code.slim(path, 90) == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"GROUP ( libc.so.6 )", b"\x7fELF\x01\x01 of 32 bits"])
def test_what_is_no_library_is_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    assert device_code.slim(path, 90) == 0
    assert path.read_bytes() == content


def test_a_real_library_works_as_before(tmp_path: Path):
    found = importlib.util.find_spec("_json")
    assert found is not None
    if not found.origin or not found.origin.endswith(".so"):
        pytest.skip("this Python has its modules in its program")
    path = Path(shutil.copy(found.origin, tmp_path))
    before = path.read_bytes()
    zeroed = device_code.slim(path, 90)
    assert (path.read_bytes() == before) == (zeroed == 0)
    asked = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import _json; print(_json.__file__, _json.scanstring)"
    done = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=False)
    assert done.stdout == f"{path} <built-in function scanstring>\n", done.stderr


def test_a_part_that_is_missing_or_changed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "one").write_bytes(b"content")
    hashes = {"one": hashlib.sha256(b"content").hexdigest()}
    install.check_parts(tmp_path, hashes)
    with pytest.raises(SystemExit, match=r"two cannot be read \(No such file or directory\): copy all files"):
        install.check_parts(tmp_path, {**hashes, "two": hashes["one"]})
    (tmp_path / "one").write_bytes(b"contend")
    with pytest.raises(SystemExit, match="one is not as it was written: copy it again"):
        install.check_parts(tmp_path, hashes)


def test_left_out_libraries_are_those_of_the_machine_or_named(tmp_path: Path):
    for name in ("deep/er/libcublas.so.12", "libcufft.so.12", "libcudnn.so.9"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    left_out = [f"2.18/nvidia/{name}" for name in ("libcublas.so.12", "libcudnn.so.9")]
    found = {"libcublas.so.12": tmp_path / "deep/er/libcublas.so.12", "libcudnn.so.9": tmp_path / "libcudnn.so.9"}
    assert install.find_libraries(left_out, [tmp_path], newer=False) == found
    with pytest.raises(SystemExit, match=r"this machine lacks libcufft\.so\.11, libnccl\.so\.2: name their folder"):
        install.find_libraries([*left_out, "libnccl.so.2", "libcufft.so.11"], [tmp_path], newer=False)
    newer = install.find_libraries([*left_out, "libcufft.so.11"], [tmp_path], newer=True)
    assert newer == {**found, "libcufft.so.11": tmp_path / "libcufft.so.12"}


def pack(folder: Path, members: dict[str, bytes], **changes: object) -> None:
    """Write a bundle of these members, as a person could who has changed it."""
    folder.mkdir()
    with tarfile.open(folder / "bundle.tar.xz.00", "w:xz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    parts = {"bundle.tar.xz.00": hashlib.sha256((folder / "bundle.tar.xz.00").read_bytes()).hexdigest()}
    about = {"parts": parts, "environments": "cache", "python": "python", "left_out": [], **changes}
    (folder / "bundle.json").write_text(json.dumps(about))
    shutil.copy(Path(install.__file__), folder)


def attempt(bundle: Path, to: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-I", bundle / "install.py", "--to", to]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("members", "changes"),
    [
        pytest.param({"../escaped": b"x"}, {}, id="a member above the folder"),
        pytest.param({"python": b"#!/bin/sh\nexit 3\n"}, {}, id="a Python that does not run"),
        pytest.param({}, {"parts": {}}, id="no part"),
        pytest.param({}, {"parts": 1}, id="parts of another form"),
        pytest.param({}, {"left_out": [1]}, id="a library that is no text"),
        pytest.param({}, {"left_out": ["../../libc.so.6"]}, id="a library above the folder"),
    ],
)
def test_a_bundle_that_was_changed_installs_nothing(
    tmp_path: Path, members: dict[str, bytes], changes: dict[str, object]
):
    pack(tmp_path / "bundle", members, **changes)
    done = attempt(tmp_path / "bundle", tmp_path / "there")
    assert done.returncode == 1
    assert "nothing was installed" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_that_exists_is_left_alone(tmp_path: Path):
    pack(tmp_path / "bundle", {})
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("mine")
    assert "exists: name a new folder" in attempt(tmp_path / "bundle", tmp_path / "there").stderr
    assert (tmp_path / "there" / "mine").read_text() == "mine"

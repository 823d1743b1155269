"""Make libraries small: the code for other GPUs in them becomes zeros, and so does what only a debugger reads.

Nothing moves inside a file, so a library works as before on the GPU that its code was kept for.

NVIDIA's compilers put a program for GPUs into a library as containers, each with the same kernels for several GPUs: as
machine code of each, and as PTX, from which a driver makes machine code of newer ones.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

ELF_64 = b"\x7fELF\x02\x01"
CONTAINER = (0xBA55ED50).to_bytes(4, "little")
PTX, MACHINE_CODE = 1, 2
# The linker of device code reads the second; what a program loads is in the first.
LOADED, LINKED = ".nv_fatbin", "__nv_relfatbin"
OF_DEBUGGERS = frozenset({
    ".symtab", ".strtab", ".debug_info", ".debug_abbrev", ".debug_loc", ".debug_aranges", ".debug_ranges",
    ".debug_line", ".debug_str", ".comment", ".gnu.build.attributes",
})  # fmt: skip
NO_BITS = 8


@dataclass(frozen=True)
class Entry:
    """A program in a container: its kind, its compute capability as a number such as 90, and where it is."""

    kind: int
    capability: int
    begin: int
    end: int


def slim(path: Path, capability: int) -> int:
    """Zero what is not for a GPU of this compute capability, such as 90, in a library; return how many bytes."""
    zeroed = 0
    with path.open("r+b") as file:
        if file.read(len(ELF_64)) != ELF_64:
            return 0
        with mmap(file.fileno(), 0) as content:
            for name, begin, end in _find_sections(content):
                if name in OF_DEBUGGERS:
                    zeroed += _zero(content, begin, end)
                elif name in (LOADED, LINKED):
                    for entries in _find_containers(content, begin, end):
                        kept = _choose(entries, capability) if name == LOADED else []
                        zeroed += sum(_zero(content, each.begin, each.end) for each in entries if each not in kept)
    return zeroed


def _zero(content: mmap, begin: int, end: int) -> int:
    content[begin:end] = bytes(end - begin)
    return end - begin


def _find_sections(content: mmap) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each section that has bytes in the file, and where these begin and end."""
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", content, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", content, table + number * size) for number in range(count)]
    if not headers:
        return
    names = headers[of_names][4]
    for name, kind, _flags, _address, begin, length in headers:
        if kind != NO_BITS and length:
            start = names + name
            yield content[start : content.find(b"\0", start)].decode(), begin, begin + length


def _find_containers(content: mmap, begin: int, end: int) -> Iterator[list[Entry]]:
    """Yield the programs of each container between two places."""
    while (place := content.find(CONTAINER, begin, end)) >= 0:
        _magic, _version, header, length = struct.unpack_from("<IHHQ", content, place)
        begin = min(place + header + length, end)
        yield _read_entries(content, place + header, begin)


def _read_entries(content: mmap, place: int, end: int) -> list[Entry]:
    """Return the programs of a container, or none if they are written in a way that is not known."""
    entries = []
    while place + 32 <= end:
        kind, _unknown, header, length = struct.unpack_from("<HHIQ", content, place)
        (capability,) = struct.unpack_from("<I", content, place + 28)
        if header < 32 or place + header + length > end:
            return []
        entries.append(Entry(kind, capability, place + header, place + header + length))
        place += header + length
    return entries


def _choose(entries: list[Entry], capability: int) -> list[Entry]:
    """Return what a driver would take for a GPU: the newest machine code that runs on it, or else the newest PTX.

    Machine code runs on GPUs of the same major version that are not older.
    """
    major = capability // 10
    running = [each for each in entries if each.kind == MACHINE_CODE and each.capability // 10 == major]
    read = [each for each in entries if each.kind == PTX]
    for kind in (running, read):
        usable = [each for each in kind if each.capability <= capability]
        if usable:
            newest = max(each.capability for each in usable)
            return [each for each in usable if each.capability == newest]
    return entries

"""Check what a release would publish, and write its bill of materials; `make release-check` runs it, without a network.

    python -m tools.release FOLDER      the wheel and the source package in FOLDER

RELEASE_TAG and RELEASE_ADDRESS are the tag and the repository that publishes; with a tag, open points are errors.
"""

import argparse
import email
import hashlib
import os
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from orchestrator.catalog import lockfile

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ("Added", "Changed", "Fixed")
UNKNOWN_OWNER = "/OWNER/"
RELATIVE = re.compile(r"\]\((?!https?:)[^)]*\)")
LOCK_BASES = "tfcompare images lock"


class Wrong(Exception):
    """The artefacts, or a page about them, are not fit to be published."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder that holds the wheel and the source package")
    options = parser.parse_args(words)
    tag, address = os.environ.get("RELEASE_TAG"), os.environ.get("RELEASE_ADDRESS")
    try:
        wheel, source = find_packages(options.folder)
        metadata = read_metadata(wheel)
        number = metadata["Version"]
        check_page(metadata)
        check_built_alike(wheel, source)
        check_number(number, tag)
        check_changelog((ROOT / "CHANGELOG.md").read_text(), number if tag else None)
        todo = list(list_open(metadata))
        if tag and todo:
            raise Wrong(f"fill in before {tag} is published: {'; '.join(todo)}")
        if tag and address and find_address(metadata) != address:
            raise Wrong(f"pyproject.toml names {find_address(metadata)}, but {address} publishes")
        document = options.folder / f"tfcompare-{number}.cdx.json"
        document.write_text(write_sbom(wheel, source, number))
    except Wrong as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"tfcompare {number}: {wheel.name} and {source.name} are the same; {document.name} lists what is installed")
    for line in todo:
        print(f"open before a release: {line}")
    for image in list_unverified_bases():
        print(f"not verified: the digest of {image}; `{LOCK_BASES}` asks its registry")
    return 0


def find_packages(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source package."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if (len(wheels), len(sources)) != (1, 1):
        raise Wrong(f"{folder} has {len(wheels)} wheels and {len(sources)} source packages; expected one of each")
    return wheels[0], sources[0]


def read_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_string(archive.read(name).decode())


def check_page(metadata: Message) -> None:
    """Raise Wrong if the package's page would have links or pictures that lead nowhere."""
    text = metadata.get_payload()
    if found := RELATIVE.search(text):
        raise Wrong(f"the package's page has a link that is relative to the repository: {found[0][1:]}")
    if "<!--" in text:
        raise Wrong("the package's page has a comment of README.md, which a reader may see")


def check_built_alike(wheel: Path, source: Path) -> None:
    """Raise Wrong unless the source package has every file of the wheel, with the same contents."""
    with zipfile.ZipFile(wheel) as archive, tarfile.open(source) as sources:
        top = source.name.removesuffix(".tar.gz")
        for name in archive.namelist():
            if ".dist-info/" in name:
                continue
            there = f"{top}/{name.removeprefix('orchestrator/_bundled/')}"
            try:
                file = sources.extractfile(there)
            except KeyError:
                raise Wrong(f"{source.name} lacks {there}, which {wheel.name} has") from None
            if file is None or file.read() != archive.read(name):
                raise Wrong(f"{there} in {source.name} is not what {wheel.name} has")


def check_number(number: str, tag: str | None) -> None:
    if tag and tag != f"v{number}":
        raise Wrong(f"the tag is {tag}, and the packages are {number}: build them from a clone that has the tag")


def check_changelog(text: str, number: str | None) -> None:
    """Raise Wrong unless the change log has only known groups, and a section for a version that is published."""
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    if next(iter(sections), "") != "Unreleased":
        raise Wrong("CHANGELOG.md does not begin with a section Unreleased")
    for title, section in sections.items():
        if title != "Unreleased" and (wrong := set(re.findall(r"^### (.*)", section, re.MULTILINE)) - {*GROUPS}):
            raise Wrong(f"CHANGELOG.md, {title}: unknown group {', '.join(sorted(wrong))}; known: {', '.join(GROUPS)}")
    if number and number not in sections:
        raise Wrong(f"CHANGELOG.md has no section {number}")
    if number and sections["Unreleased"].strip():
        raise Wrong(f"CHANGELOG.md has lines below Unreleased: move them to {number}")


def list_open(metadata: Message) -> Iterator[str]:
    """Yield what has to be filled in before a version is published."""
    if UNKNOWN_OWNER in find_address(metadata):
        yield "the address of the repository, in pyproject.toml below [project.urls]"


def find_address(metadata: Message) -> str:
    [line] = [line for line in metadata.get_all("Project-URL", []) if line.startswith("Repository, ")]
    return str(line.partition(", ")[2])


def list_unverified_bases() -> list[str]:
    """Return the images of the table whose digest was not verified."""
    table = tomllib.loads((ROOT / "images" / "versions.toml").read_text())
    return sorted({entry["image"] for entry in find_tables(table) if entry.get("image") and entry.get("digest") == ""})


def find_tables(value: object) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from find_tables(part)
    elif isinstance(value, list):
        for part in value:
            yield from find_tables(part)


def write_sbom(wheel: Path, source: Path, number: str) -> str:
    """Return both packages as CycloneDX, with the dependencies in the versions that are tested."""
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    from orchestrator.images.sbom import describe_package, write_document

    url = PackageURL("pypi", None, "tfcompare", number)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, source)]
    own = Component(
        type=ComponentType.APPLICATION, name="tfcompare", version=number, bom_ref=url.to_string(), purl=url,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests],
    )  # fmt: skip
    parts = [describe_package(pin) for pin in lockfile.read_lock(ROOT / "requirements" / "run.txt")]
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"tfcompare:{':'.join(digests)}"), components=parts)
    bom.metadata.component = own
    bom.register_dependency(own, parts)
    return write_document(bom)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a release may publish, and what stops it; tests/install has the packages of this checkout."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import release
from tools.release import check_changelog, list_unverified_bases

NUMBER = "0.1.0"
METADATA = """Metadata-Version: 2.4
Name: tfcompare
Version: {number}
Project-URL: Repository, {address}

{page}
"""
OURS = "https://forge.example/me/tfcompare"
LOG = "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n### Added\n- All.\n"


@pytest.fixture(autouse=True)
def _untagged(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RELEASE_TAG", "RELEASE_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose change log the test may edit."""
    root = tmp_path / "root"
    (root / "images").mkdir(parents=True)
    (root / "images" / "versions.toml").write_text('[python."3.9"]\nimage = "python:3.9-slim"\ndigest = ""\n')
    (root / "requirements").mkdir()
    (root / "requirements" / "run.txt").write_text(f"six==1.17.0 --hash=sha256:{'a' * 64}\n")
    (root / "CHANGELOG.md").write_text(LOG)
    monkeypatch.setattr(release, "ROOT", root)
    return root / "CHANGELOG.md"


def pack(folder: Path, files: dict[str, str], page: str = "See https.", address: str = OURS, **other: str) -> Path:
    """Write a wheel and a source package; `other` has files that are different in the source package."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"tfcompare-{NUMBER}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        metadata = METADATA.format(number=NUMBER, address=address, page=page)
        wheel.writestr(f"tfcompare-{NUMBER}.dist-info/METADATA", metadata)
    with tarfile.open(folder / f"tfcompare-{NUMBER}.tar.gz", "w:gz") as source:
        for name, text in {**files, **other}.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"tfcompare-{NUMBER}/{name.removeprefix('orchestrator/_bundled/')}")
            entry.size = len(data)
            source.addfile(entry, io.BytesIO(data))
    return folder


FILES = {"orchestrator/a.py": "a", "orchestrator/_bundled/images/b.toml": "b"}


@pytest.mark.usefixtures("log")
def test_packages_that_agree_pass_and_what_is_open_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = pack(tmp_path / "out", FILES, address="https://github.com/OWNER/tfcompare")
    assert release.main([str(folder)]) == 0
    told = capsys.readouterr().out
    assert "open before a release: the address of the repository" in told
    assert "not verified: the digest of python:3.9-slim; `tfcompare images lock` asks its registry" in told
    document = json.loads((folder / f"tfcompare-{NUMBER}.cdx.json").read_text())
    assert [(part["name"], part["version"]) for part in document["components"]] == [("six", "1.17.0")]
    own = document["metadata"]["component"]
    assert (own["name"], own["version"], len(own["hashes"])) == ("tfcompare", NUMBER, 2)


@pytest.mark.usefixtures("log")
def test_a_tag_publishes_what_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELEASE_TAG", f"v{NUMBER}")
    monkeypatch.setenv("RELEASE_ADDRESS", OURS)
    assert release.main([str(pack(tmp_path / "out", FILES))]) == 0


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("tag", "publisher", "named", "why"),
    [
        ("v0.2.0", OURS, OURS, "the tag is v0.2.0, and the packages are 0.1.0"),
        ("v0.1.0", OURS, "https://github.com/OWNER/tfcompare", "the address of the repository"),
        ("v0.1.0", "https://forge.example/a-fork/tfcompare", OURS, "a-fork/tfcompare publishes"),
    ],
)
def test_a_tag_does_not_publish(tmp_path: Path, monkeypatch, capsys, tag: str, publisher: str, named: str, why: str):
    monkeypatch.setenv("RELEASE_TAG", tag)
    monkeypatch.setenv("RELEASE_ADDRESS", publisher)
    assert release.main([str(pack(tmp_path / "out", FILES, address=named))]) == 1
    assert why in capsys.readouterr().err


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("![A picture](docs/a.svg)", "relative to the repository: (docs/a.svg)"),
        ("Read [this](docs/a.md).", "relative to the repository: (docs/a.md)"),
        ("<!-- here -->", "has a comment"),
    ],
)
def test_a_page_whose_links_lead_nowhere_stops_it(tmp_path: Path, capsys, page: str, why: str):
    assert release.main([str(pack(tmp_path / "out", FILES, page=page))]) == 1
    assert why in capsys.readouterr().err


@pytest.mark.usefixtures("log")
def test_a_source_package_that_differs_from_the_wheel_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = pack(tmp_path / "out", FILES, **{"orchestrator/a.py": "changed"})
    assert release.main([str(folder)]) == 1
    assert "orchestrator/a.py in tfcompare-0.1.0.tar.gz is not what" in capsys.readouterr().err
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("orchestrator/new.py", "")
    assert release.main([str(pack(tmp_path / "same", FILES))]) == 0
    (tmp_path / "same" / wheel.name).write_bytes(wheel.read_bytes())
    assert release.main([str(tmp_path / "same")]) == 1
    assert "lacks tfcompare-0.1.0/orchestrator/new.py" in capsys.readouterr().err


def test_a_folder_without_both_packages_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert release.main([str(tmp_path)]) == 1
    assert "has 0 wheels and 0 source packages" in capsys.readouterr().err


def test_the_change_log_of_a_version_is_whole_before_it_is_published():
    check_changelog(LOG, NUMBER)
    check_changelog(LOG.replace("## Unreleased\n", "## Unreleased\n- New.\n"), None)
    for text, why in (
        (LOG.replace("## Unreleased\n", "## Unreleased\n- New.\n"), "below Unreleased: move them to 0.1.0"),
        (LOG.replace("## 0.1.0", "## 0.0.9"), "has no section 0.1.0"),
        (LOG.replace("### Added", "### Adds"), "unknown group Adds; known: Added, Changed, Fixed"),
        (LOG.replace("## Unreleased\n", ""), "does not begin with a section Unreleased"),
    ):
        with pytest.raises(release.Wrong, match=why):
            check_changelog(text, NUMBER)


def test_every_base_of_the_table_without_a_digest_is_listed(log: Path):
    table = log.parent / "images" / "versions.toml"
    table.write_text(table.read_text() + '[[python.other]]\nimage = "a"\ndigest = "sha256:1"\n')
    assert list_unverified_bases() == ["python:3.9-slim"]

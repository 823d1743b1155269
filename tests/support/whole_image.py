"""Images without TensorFlow in which everything is as the table and the locks say, for `images verify`."""

import base64
import hashlib
import io
import tarfile
from pathlib import Path

from orchestrator.catalog import lockfile
from orchestrator.catalog.version import Flavour
from tests.support import stub

PREFIX = "opt/tfcompare"


def write_context(folder: Path, base: str, flavour: Flavour, tensorflow: str, labels: str, more: str = "") -> bytes:
    """The context of a build of such an image: `more` is the end of its Dockerfile."""
    python = flavour.python.number
    packages = Path(PREFIX) / "lib" / f"python{python}" / "site-packages"
    site = folder / packages
    stub.write(site, tensorflow)
    pinned = lockfile.list_packages(flavour.pip_lock, flavour.lock)
    (site / "numpy").mkdir()
    (site / "numpy" / "__init__.py").write_text(f"__version__ = '{pinned['numpy']}'\n")
    code = sorted(file for file in site.rglob("*") if file.is_file())
    for name, number in pinned.items():
        record = site / f"{name}-{number}.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Name: {name}\nVersion: {number}\n")
        files = [record / "METADATA", *(code if name == "numpy" else ())]
        (record / "RECORD").write_text("".join(f"{file.relative_to(site)},{_digest(file)},\n" for file in files))
    (folder / PREFIX / "bin").mkdir()
    (folder / PREFIX / "bin" / "python3").symlink_to("/usr/local/bin/python3")
    (folder / PREFIX / "pyvenv.cfg").write_text("home = /usr/local/bin\ninclude-system-site-packages = false\n")
    (folder / "Dockerfile").write_text(
        f"FROM {base}\nCOPY opt /opt\nENV PATH=/{PREFIX}/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1\n"
        f"USER 65534\nWORKDIR /tmp\n{labels}\n{more}\n"
    )
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        tar.add(folder, ".")
    return context.getvalue()


def _digest(file: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
    return f"sha256={digest.decode().rstrip('=')}"

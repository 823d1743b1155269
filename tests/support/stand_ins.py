"""Stand-ins for systemctl and crontab that note what they are asked."""

import os
from pathlib import Path

import pytest

from orchestrator.nightly.schedule import systemd

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$NOTES/systemctl"
case "$*" in *"$REFUSED"*) echo "Failed to do it: Access denied" >&2; exit 1;; esac
"""
CRONTAB = """#!/bin/sh
echo "$*" >> "$NOTES/crontab"
[ -z "$DENIED" ] || { echo "$DENIED" >&2; exit 1; }
case $1 in
-l) [ -f "$NOTES/table" ] || { echo "no crontab for somebody" >&2; exit 1; }; cat "$NOTES/table";;
-r) rm "$NOTES/table";;
-) [ -z "$REFUSED" ] || { echo '"-":1: bad minute' >&2; exit 1; }; cat > "$NOTES/table";;
esac
"""
FLAGS = ("--versions", "2.13,1.14", "--suite", "studies")


class Machine:
    """A machine with stand-ins on its PATH, and folders of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.bin = folder / "bin"
        self._patch = monkeypatch
        for path in (self.notes, self.bin, folder / "system", folder / "home here"):
            path.mkdir()
        # Beside these a machine has its shell.
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        # What is not executable is looked for further on: these hide the real ones from whoever only asks for them.
        for name in ("crontab", "systemctl", "loginctl"):
            (self.bin / name).write_text("")
        monkeypatch.setattr(
            "shutil.which", lambda name: path if os.access(path := str(self.bin / name), os.X_OK) else None
        )
        self.set(NOTES=str(self.notes), REFUSED="never asked for", DENIED="", HOME=str(folder / "home here"))
        self.set(TFCOMPARE_DATA=str(folder / "my data"), XDG_CONFIG_HOME=str(folder / "config"))
        monkeypatch.delenv("TFCOMPARE_HISTORY", raising=False)
        monkeypatch.setattr(systemd, "SYSTEM_UNITS", folder / "system")
        monkeypatch.chdir(folder)

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)

    def has(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def asked(self, name: str) -> list[str]:
        path = self.notes / name
        return path.read_text().splitlines() if path.exists() else []

    @property
    def table(self) -> str:
        return (self.notes / "table").read_text()

    def files(self) -> list[str]:
        roots = [self.folder / "system", self.folder / "config", self.folder / "my data"]
        return sorted(path.name for root in roots for path in root.rglob("*") if path.is_file())

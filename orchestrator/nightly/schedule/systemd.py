"""Nightly runs by a timer of systemd, for the user or for the system."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.scheduler import (
    SchedulerEntry,
    output_of,
    read_part,
    remove_part,
    run_tool,
    user_name,
    write_part,
)
from orchestrator.nightly.schedule.units import UNIT, Schedule

SERVICE, TIMER = f"{UNIT}.service", f"{UNIT}.timer"
SYSTEM_UNITS = Path("/etc/systemd/system")


class Systemd:
    """The systemd manager of a user or of the system."""

    def __init__(self, *, system: bool) -> None:
        self._system = system
        self.name = "systemd"
        self.title = "systemd of the system" if system else f"systemd of {user_name()}"

    @property
    def folder(self) -> Path:
        if self._system:
            return SYSTEM_UNITS
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"

    def obstacle(self) -> str:
        if not shutil.which("systemctl"):
            return "there is no systemctl"
        # systemd answers this in any state of its units, unlike `is-system-running`.
        done = self._systemctl("show-environment")
        return f"{self.title} does not answer ({output_of(done)})" if done.returncode else ""

    def render_files(self, wanted: Schedule) -> dict[str, str]:
        units = schedule.units(wanted, system=self._system)
        return {str(self.folder / name): text for name, text in units.items()}

    def notes(self) -> tuple[str, ...]:
        if self._system:
            return ()
        done = run_tool("loginctl", "show-user", user_name(), "--property=Linger", "--value")
        if done.returncode == 0 and done.stdout.decode(errors="replace").strip() == "yes":
            return ()
        return (
            f"timers run only while {user_name()} is logged in, until you call `loginctl enable-linger {user_name()}`",
        )

    def entry(self) -> SchedulerEntry | None:
        parts = {str(self.folder / name): read_part(self.folder / name) for name in (TIMER, SERVICE)}
        return SchedulerEntry(parts) if any(parts.values()) else None

    def install(self, wanted: Schedule) -> list[Path]:
        kept: list[Path] = []
        try:
            for path, text in self.render_files(wanted).items():
                kept += write_part(Path(path), text, 0o600)
            self._ask("daemon-reload")
            self._ask("enable", TIMER)
            # A timer that runs already keeps its old time until it is restarted.
            self._ask("restart", TIMER)
        except UsageError:
            with suppress(UsageError):
                self.uninstall()
            raise
        return kept

    def uninstall(self) -> None:
        self._systemctl("disable", "--now", TIMER)
        # The first is a link to the second; `disable` has removed it already if the manager answered.
        for name in (f"timers.target.wants/{TIMER}", TIMER, SERVICE):
            remove_part(self.folder / name)
        self._systemctl("daemon-reload")

    def _ask(self, *words: str) -> None:
        done = self._systemctl(*words)
        if done.returncode:
            raise UsageError(
                f"systemctl {' '.join(words)}: {output_of(done)}; --scheduler cron uses the crontab instead"
            )

    def _systemctl(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return run_tool("systemctl", *([] if self._system else ["--user"]), *words)

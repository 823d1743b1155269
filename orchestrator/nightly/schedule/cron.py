"""Nightly runs by a line in a crontab."""

import shutil
from pathlib import Path

from orchestrator.catalog import user_data
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
from orchestrator.nightly.schedule.units import UNIT, BrokenMarks, Schedule

DAEMONS = ("crond.pid", "cron.pid")


class Cron:
    """The crontab of the current user, and the script that it runs."""

    def __init__(self) -> None:
        self.name = "cron"
        self.title = f"cron of {user_name()}"

    @property
    def script(self) -> Path:
        return user_data.folder() / "nightly.sh"

    @property
    def crontab(self) -> str:
        return f"the crontab of {user_name()}"

    def obstacle(self) -> str:
        if not shutil.which("crontab"):
            return "there is no crontab"
        try:
            self._table()
        except UsageError as error:
            return str(error)
        return ""

    def render_files(self, wanted: Schedule) -> dict[str, str]:
        return {
            str(self.script): schedule.script(wanted),
            self.crontab: schedule.cron_lines(wanted.planned, self.script),
        }

    def notes(self) -> tuple[str, ...]:
        if any((Path("/run") / name).exists() for name in DAEMONS):
            return ()
        return ("no cron daemon seems to run here, so nothing will call this until one does",)

    def entry(self) -> SchedulerEntry | None:
        parts = {self.crontab: self._parts()[1]} if shutil.which("crontab") else {}
        parts[str(self.script)] = read_part(self.script)
        return SchedulerEntry(parts) if any(parts.values()) else None

    def install(self, wanted: Schedule) -> list[Path]:
        before, part, after = self._parts()
        texts = self.render_files(wanted)
        try:
            kept = write_part(self.script, texts[str(self.script)], 0o700)
            self._settle(before + texts[self.crontab] + after)
        except UsageError:
            if not part:
                remove_part(self.script)
            raise
        return kept

    def uninstall(self) -> None:
        if shutil.which("crontab"):
            before, part, after = self._parts()
            if part:
                self._settle(before + after)
        remove_part(self.script)

    def _parts(self) -> tuple[str, str, str]:
        try:
            return schedule.own_part(self._table())
        except BrokenMarks as error:
            raise UsageError(
                f"{self.crontab} holds one of the two marks of tfcompare's lines ({UNIT}) and not the other, "
                "which was removed by hand. Remove what is left with `crontab -e`"
            ) from error

    def _table(self) -> str:
        done = run_tool("crontab", "-l")
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        if b"no crontab for" in done.stderr:
            return ""
        raise UsageError(f"crontab -l: {output_of(done)}")

    def _settle(self, table: str) -> None:
        # A crontab without any lines is removed, as if there had never been one.
        words = ("crontab", "-") if table else ("crontab", "-r")
        done = run_tool(*words, stdin=table.encode("utf-8", "surrogateescape"))
        if done.returncode:
            raise UsageError(f"{' '.join(words)}: {output_of(done)}; the crontab is as it was")

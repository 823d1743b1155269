"""Finds the targets of notifications in flags, in the environment and in a file."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import UsageError
from orchestrator.nightly.apprise_log import install_log_capture
from orchestrator.redact import mask_url
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    import apprise

FLAG, VARIABLE = "--notify", "TFCOMPARE_NOTIFY"
NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, kw_only=True)
class NotifyTarget:
    name: str
    url: str = field(repr=False)


def find_targets(
    urls: Sequence[str],
    file: Path | None,
    environ: Mapping[str, str],
    view: View,
    *,
    is_own_file: bool = True,
) -> tuple[NotifyTarget, ...]:
    """Return the targets named by arguments, environment and file.

    A target that cannot be used is reported now, and not at the end of a nightly run. A file that only the settings of
    a folder name is not the user's own, and no values of the environment are filled in there.
    """
    by_url: dict[str, NotifyTarget] = {}
    for where, text in _collect_urls(urls, file, environ, view):
        if not is_own_file and where not in (FLAG, VARIABLE) and "${" in text:
            raise UsageError(f"{where}: ${{...}} is filled in only in a file that you name with --notify-file yourself")
        url = _expand(where, text, environ)
        if url not in by_url:
            load_plugin(url, where)
            by_url[url] = NotifyTarget(name=mask_url(url), url=url)
    names = Counter(target.name for target in by_url.values())
    return tuple(
        replace(target, name=f"{target.name} (target {number})") if names[target.name] > 1 else target
        for number, target in enumerate(by_url.values(), start=1)
    )


def _collect_urls(
    urls: Sequence[str], file: Path | None, environ: Mapping[str, str], view: View
) -> Iterator[tuple[str, str]]:
    """Yield each URL with the source by which a message names it."""
    yield from ((FLAG, url.strip()) for url in urls)
    yield from ((VARIABLE, url) for url in environ.get(VARIABLE, "").split())
    if file is None:
        return
    try:
        text = file.read_text(encoding="utf-8")
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"--notify-file {file}: cannot be read: {why}") from None
    if os.name == "posix" and mode & 0o044:
        view.say(f"warning: {file} can be read by others than its owner, and has secrets in it; chmod 600 {file}")
    for number, line in enumerate(text.splitlines(), start=1):
        # A # inside a URL belongs to the URL, as in the name of a channel.
        if url := re.sub(r"(^|\s)#.*", "", line).strip():
            yield f"{file}, line {number}", url


def _expand(where: str, text: str, environ: Mapping[str, str]) -> str:
    for name in NAME.findall(text):
        if not environ.get(name):
            raise UsageError(f"{where}: names ${{{name}}}, and the environment has no {name}; set it, or name another")
    if "${" in NAME.sub("", text):
        raise UsageError(f"{where}: a name in ${{…}} is made of letters, digits and _")
    return NAME.sub(lambda match: environ[match[1]], text)


def load_plugin(url: str, where: str) -> "apprise.NotifyBase":
    try:
        import apprise
    except ModuleNotFoundError as error:
        raise UsageError(f"{where}: notifications need apprise: pip install 'tfcompare[notify]'") from error
    install_log_capture()
    # The messages have no pictures, since the reader's program would fetch them from another server.
    asset = apprise.AppriseAsset(
        app_id="tfcompare", app_desc="tfcompare", app_url="", image_url_mask="", image_url_logo=""
    )
    plugin = apprise.Apprise.instantiate(url, asset=asset)
    if plugin is None:
        raise UsageError(
            f"{where}: {mask_url(url)} is not a valid apprise URL, or it needs a package that is not installed; "
            "`apprise --details` lists the kinds of URLs and their parts"
        )
    return plugin

"""Who is notified: by flags, by the environment and by a file."""

import io
import sys
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.notify import send
from orchestrator.nightly.targets import find_targets
from orchestrator.terminal.view import View
from tests.support.heard import Heard
from tests.support.night_reports import SOMETHING

SECRET = "hunter2"


def test_targets_come_from_flags_the_environment_and_a_file_each_once(tmp_path: Path) -> None:
    file = tmp_path / "notify"
    file.write_text(
        "# whom to tell\n\njson://c.example.org/  # the team\n  json://a.example.org/\nslack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general\n"
    )
    file.chmod(0o600)
    said: list[str] = []
    environ = {"TFCOMPARE_NOTIFY": " json://b.example.org/x \n json://b.example.org/y"}
    found = find_targets(["json://a.example.org/"], file, environ, Heard(said))
    assert [target.url for target in found] == [
        "json://a.example.org/",
        "json://b.example.org/x",
        "json://b.example.org/y",
        "json://c.example.org/",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
    ]
    assert [target.name for target in found] == [
        "json://a.example.org/…",
        "json://b.example.org/… (target 2)",
        "json://b.example.org/… (target 3)",
        "json://c.example.org/…",
        "slack://…",
    ]
    assert said == []


def test_nobody_is_told_where_nobody_is_named_and_apprise_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert find_targets((), None, {}, View()) == ()
    assert send(SOMETHING, (), heartbeat=True, view=View()) == ()


def test_without_apprise_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UsageError, match=r"pip install 'tfcompare\[notify\]'"):
        find_targets(["json://a.example.org/"], None, {}, View())


def test_a_name_in_an_url_is_taken_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "notify"
    file.write_text("json://${HOOK_HOST}/${HOOK}\n")
    file.chmod(0o600)
    environ = {"HOOK": SECRET, "HOOK_HOST": "b.example.org", "TFCOMPARE_NOTIFY": "${ALL}", "ALL": f"json://c/{SECRET}"}
    found = find_targets([f"json://me:${{HOOK}}@a.example.org/{SECRET}"], file, environ, View())
    assert [target.url for target in found] == [
        f"json://me:{SECRET}@a.example.org/{SECRET}",
        f"json://c/{SECRET}",
        f"json://b.example.org/{SECRET}",
    ]
    assert SECRET not in repr(found)


@pytest.mark.parametrize("environ", [{}, {"HOOK": ""}])
def test_a_name_that_the_environment_lacks_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--notify: names \$\{HOOK\}, and the environment has no HOOK") as caught:
        find_targets([f"json://me:{SECRET}@a.example.org/${{HOOK}}"], None, environ, View())
    assert SECRET not in str(caught.value)


def test_a_name_that_can_be_none_is_an_error() -> None:
    with pytest.raises(UsageError, match="letters, digits and _"):
        find_targets(["json://a.example.org/${MY-HOOK}"], None, {"MY-HOOK": "x"}, View())


@pytest.mark.parametrize(
    "url", [f"nothing://{SECRET}/{SECRET}", f"slack://{SECRET}", SECRET, f"json://me:{SECRET}", f"tgram://{SECRET}/"]
)
def test_an_url_that_apprise_cannot_use_is_an_error_before_the_night_begins(
    url: str, tmp_path: Path, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notify"
    file.write_text(f"# one\n{url}\n")
    file.chmod(0o600)
    with pytest.raises(UsageError, match=r"notify, line 2: .*apprise --details") as caught:
        find_targets((), file, {}, View())
    assert SECRET not in str(caught.value) + logged.getvalue() + "".join(capfd.readouterr())


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o604, True), (0o400, False)])
def test_a_file_that_others_can_read_gets_a_warning(tmp_path: Path, mode: int, warned: bool) -> None:
    file = tmp_path / "notify"
    file.write_text("json://a.example.org/\n")
    file.chmod(mode)
    said: list[str] = []
    assert len(find_targets((), file, {}, Heard(said))) == 1
    assert [f"chmod 600 {file}" in text for text in said] == ([True] if warned else [])


def test_a_file_that_is_not_there_or_no_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        find_targets((), tmp_path / "none", {}, View())
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read: it is no text"):
        find_targets((), tmp_path / "bytes", {}, View())

"""Who is told, what arrives there, what happens where nothing can arrive, and that no secret is shown on the way."""

import base64
import io
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import apprise
import pytest
from apprise.plugins import N_MGR
from apprise.plugins.custom_json import NotifyJSON

from orchestrator.history.model import NightReport
from orchestrator.nightly import notify
from orchestrator.nightly.message import compose
from orchestrator.nightly.notify import send, try_out
from orchestrator.nightly.targets import NotifyTarget, find_targets
from orchestrator.terminal.view import View
from tests.support.heard import Heard
from tests.support.message_servers import Inbox, mail, web
from tests.support.night_reports import LONG_CASE, NIGHT, QUIET, SOMETHING, alarm, slower

SECRET = "hunter2"
HOST = socket.gethostname()


@pytest.fixture
def server() -> Iterator[Inbox]:
    with web() as inbox:
        yield inbox


@pytest.fixture
def mailbox() -> Iterator[Inbox]:
    with mail() as inbox:
        yield inbox


class Teller:
    """Sends, and keeps all that was said and slept on the way."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.slept: list[float] = []

    def __call__(self, told: NightReport, *urls: str, heartbeat: bool = False) -> tuple[str, ...]:
        found = find_targets(urls, None, {}, Heard(self.said))
        return send(told, found, heartbeat=heartbeat, view=Heard(self.said), sleep=self.slept.append)


@pytest.fixture
def tell() -> Teller:
    return Teller()


def nobody_listens() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_webhook_gets_title_text_and_gravity_as_json(server: Inbox, tell: Teller) -> None:
    assert tell(SOMETHING, f"json://127.0.0.1:{server.port}/hook") == ()
    [(path, _)], [body] = server.got, server.objects()
    message = compose(SOMETHING, HOST)
    assert path == "/hook"
    assert (body["title"], body["message"], body["type"]) == (message.title, message.text, "warning")
    assert tell.said == ["told json://127.0.0.1/…"]
    assert tell.slept == []


def test_a_webhook_gets_the_same_as_a_form(server: Inbox, tell: Teller) -> None:
    assert tell(SOMETHING, f"form://127.0.0.1:{server.port}/hook") == ()
    [(_, body)] = server.got
    fields = parse_qs(body.decode())
    assert fields["title"] == [compose(SOMETHING, HOST).title]
    assert fields["message"][0].split() == compose(SOMETHING, HOST).text.split()


@pytest.mark.parametrize("form", ["text", "html", "markdown"])
def test_a_target_may_ask_for_another_form(server: Inbox, tell: Teller, form: str) -> None:
    assert tell(SOMETHING, f"json://127.0.0.1:{server.port}/?format={form}") == ()
    assert server.objects()[0]["message"].strip() == getattr(compose(SOMETHING, HOST), form).strip()


def test_a_mail_is_plain_text_that_stays_as_it_was_written(mailbox: Inbox, tell: Teller) -> None:
    told = NightReport(night=NIGHT, opened=(alarm(1.12, LONG_CASE), alarm(0.8, id="b")), warnings=("a file — é",))
    url = f"mailto://127.0.0.1:{mailbox.port}?from=tf@example.org&to=team@example.org"
    assert tell(told, url) == ()
    [arrived] = mailbox.mails
    assert arrived["Subject"] == compose(told, HOST).title
    assert arrived["To"] == "team@example.org"
    assert arrived.get_content_type() == "text/plain"
    assert arrived.get_content().replace("\r\n", "\n").rstrip() == compose(told, HOST).text


def test_a_mail_can_be_html_with_a_plain_part(mailbox: Inbox, tell: Teller) -> None:
    told = NightReport(night=NIGHT, warnings=("<script>alert(1)</script>",))
    url = f"mailto://127.0.0.1:{mailbox.port}?from=tf@example.org&to=team@example.org&format=html"
    assert tell(told, url) == ()
    [arrived] = mailbox.mails
    html = arrived.get_body(("html",))
    plain = arrived.get_body(("plain",))
    assert html is not None
    assert plain is not None
    assert "&lt;script&gt;" in html.get_content()
    assert "<script>" not in html.get_content()
    assert "Warnings: 1" in plain.get_content()


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("mailto://me:pw@example.org", "text"),
        ("mailto://me:pw@example.org?format=html", "html"),
        ("json://example.org", "text"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general", "markdown"),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "markdown"),
        ("tgram://123456789:AAbcdefghijklmnopqrstuvwxyz012345678/12315544", "html"),
        ("ntfy://topic", "text"),
    ],
)
def test_each_kind_gets_the_form_that_it_shows_best(url: str, form: str) -> None:
    plugin = apprise.Apprise.instantiate(url)
    assert plugin is not None
    assert notify._form(plugin) == form


def test_every_kind_that_there_is_takes_the_form_chosen_for_it() -> None:
    declared = [kind.notify_format for kind in N_MGR.plugins()]
    assert len(declared) > 100
    for formats in declared:
        forms = [one.value for one in (formats if isinstance(formats, tuple) else (formats,))]
        assert notify._best(forms) in forms


def test_a_service_with_little_room_gets_the_worst_alarms_that_fit(
    server: Inbox, tell: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NotifyJSON, "body_maxlen", 2000)
    told = NightReport(night=replace(NIGHT, cells=100), opened=slower(24))
    assert tell(told, f"json://127.0.0.1:{server.port}/") == ()
    [body] = server.objects()
    assert len(body["message"]) <= 2000
    assert re.findall(r"style=(\d+)\] in", body["message"]) == ["23", "22"]
    assert "and 22 more: tfcompare history" in body["message"]


def test_a_telephone_gets_the_title(server: Inbox, tell: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotifyJSON, "body_maxlen", 160)
    monkeypatch.setattr(NotifyJSON, "title_maxlen", 0)
    assert tell(SOMETHING, f"json://127.0.0.1:{server.port}/") == ()
    assert [body["message"] for body in server.objects()] == [compose(SOMETHING, HOST).title]


def test_nothing_is_sent_of_a_night_in_which_nothing_happened(server: Inbox, tell: Teller) -> None:
    assert tell(QUIET, f"json://127.0.0.1:{server.port}/") == ()
    assert server.got == []


def test_a_heartbeat_is_sent_whatever_happened(server: Inbox, tell: Teller) -> None:
    assert tell(QUIET, f"json://127.0.0.1:{server.port}/", heartbeat=True) == ()
    assert [body["title"] for body in server.objects()] == [compose(QUIET, HOST).title]
    assert "nothing changed" in server.objects()[0]["title"]


def test_a_server_that_fails_twice_is_told_the_third_time(server: Inbox, tell: Teller) -> None:
    server.answers = [500, 503, 200]
    assert tell(SOMETHING, f"json://127.0.0.1:{server.port}/") == ()
    assert len(server.got) == 3
    assert tell.slept == [2, 8]
    assert tell.said == [
        "json://127.0.0.1/…: it answered 500; tried again in 2 s",
        "json://127.0.0.1/…: it answered 503; tried again in 8 s",
        "told json://127.0.0.1/…",
    ]


def test_a_server_that_is_down_is_tried_a_few_times_and_then_told_of(tell: Teller) -> None:
    lost = tell(SOMETHING, f"json://127.0.0.1:{nobody_listens()}/{SECRET}")
    assert lost == ("json://127.0.0.1/… was not told: it refused the connection (4 attempts)",)
    assert tell.slept == [2, 8, 20]


def test_what_will_not_get_better_is_not_tried_again(server: Inbox, tell: Teller) -> None:
    server.answers = [401]
    lost = tell(SOMETHING, f"json://127.0.0.1:{server.port}/")
    assert lost == ("json://127.0.0.1/… was not told: it answered 401: are user, password and token right?",)
    assert len(server.got) == 1


def test_a_server_that_hangs_is_given_up(server: Inbox, tell: Teller) -> None:
    server.answers = [1.0]
    began = time.monotonic()
    lost = tell(SOMETHING, f"json://127.0.0.1:{server.port}/?rto=0.1")
    assert lost == ("json://127.0.0.1/… was not told: it did not answer in time (4 attempts)",)
    assert time.monotonic() - began < 5


def test_a_server_that_never_ends_its_answer_does_not_hold_up_the_night(
    tell: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "PATIENCE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        lost = tell(SOMETHING, f"json://127.0.0.1:{silent.getsockname()[1]}/?rto=5")
        assert lost == ("json://127.0.0.1/… was not told: it did not answer in time",)
        assert time.monotonic() - began < 3


def test_an_answer_that_comes_late_is_not_followed_by_a_second_message(
    server: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "PATIENCE_S", 0.1)
    server.answers = [0.4]
    found = find_targets([f"json://127.0.0.1:{server.port}/"], None, {}, View())
    assert send(SOMETHING, found, heartbeat=False, view=View(), sleep=lambda s: time.sleep(0.3)) == ()
    assert len(server.got) == 1


def test_retries_end_after_about_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(notify.time, "monotonic", lambda: now[0])

    def attempt(pending: Any) -> None:
        now[0] += notify.PATIENCE_S

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(notify, "_attempt", attempt)
    lost = send(SOMETHING, [NotifyTarget(name="a", url="json://a")], heartbeat=False, view=View(), sleep=sleep)
    assert len(lost) == 1
    assert 30 < now[0] <= 65


def test_one_that_is_down_keeps_no_other_from_being_told(server: Inbox, mailbox: Inbox, tell: Teller) -> None:
    lost = tell(
        SOMETHING,
        f"json://127.0.0.1:{nobody_listens()}/",
        f"form://127.0.0.1:{server.port}/",
        f"mailto://127.0.0.1:{mailbox.port}?from=tf@example.org&to=team@example.org",
    )
    assert [line.partition(" ")[0] for line in lost] == ["json://127.0.0.1/…"]
    assert len(server.got) == len(mailbox.mails) == 1


def test_a_mail_that_one_of_two_did_not_take_is_not_sent_to_the_other_again(mailbox: Inbox, tell: Teller) -> None:
    mailbox.refused = {"gone@example.org": "450 try later"}
    lost = tell(SOMETHING, f"mailto://127.0.0.1:{mailbox.port}/team@example.org/gone@example.org/?from=tf@example.org")
    assert len(mailbox.mails) == 1
    [line] = lost
    assert line.startswith("mailto://… was not told: it did not accept the whole message or all recipients")


@pytest.mark.parametrize(("answer", "attempts"), [("450 try later", 4), ("550 no such mailbox", 1)])
def test_a_mail_server_that_says_later_is_asked_later(mailbox: Inbox, tell: Teller, answer: str, attempts: int) -> None:
    mailbox.refused = {"team@example.org": answer}
    [line] = tell(SOMETHING, f"mailto://127.0.0.1:{mailbox.port}?from=tf@example.org&to=team@example.org")
    assert f"its mail server answered {answer[:3]}" in line
    assert len(mailbox.recipients) == attempts


def test_a_mail_server_that_takes_no_password_is_told_as_that(mailbox: Inbox, tell: Teller) -> None:
    url = f"mailto://me:{SECRET}@127.0.0.1:{mailbox.port}?from=tf@example.org&to=team@example.org"
    [line] = tell(SOMETHING, url)
    assert line == (
        "mailto://127.0.0.1/… was not told: its mail server answered 535: are user, password and token right?"
    )


@pytest.mark.parametrize(
    "answers", [[500], [401], [404], [0.5], [b"nonsense\r\n\r\n"], [b"HTTP/1.1 200 O\r\nx\r\n\r\n"]]
)
def test_no_secret_is_said_or_logged_whatever_the_server_does(
    server: Inbox,
    tell: Teller,
    answers: list[Any],
    logged: io.StringIO,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server.answers = answers
    url = f"json://me:{SECRET}@127.0.0.1:{server.port}/p-{SECRET}?+X-Token={SECRET}&:key={SECRET}&rto=0.1"
    found = find_targets([url], None, {}, Heard(tell.said))
    lost = send(SOMETHING, found, heartbeat=False, view=Heard(tell.said), sleep=tell.slept.append)
    assert server.got[0][0].startswith(f"/p-{SECRET}")
    shown = "".join((*lost, *tell.said, repr(found), logged.getvalue(), *capfd.readouterr()))
    assert SECRET not in shown
    assert base64.b64encode(f"me:{SECRET}".encode()).decode() not in shown


def test_no_secret_is_said_or_logged_of_a_server_that_is_down(
    tell: Teller, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    port = nobody_listens()
    lost = tell(
        SOMETHING,
        f"json://{SECRET}:{SECRET}@127.0.0.1:{port}/{SECRET}",
        f"mailto://{SECRET}:{SECRET}@127.0.0.1:{port}?from=a@example.org&to={SECRET}@example.org",
        f"jsons://127.0.0.1:{port}/{SECRET}",
    )
    assert len(lost) == 3
    assert SECRET not in "".join((*lost, *tell.said, logged.getvalue(), *capfd.readouterr()))


def test_a_trial_reaches_everybody(server: Inbox, mailbox: Inbox) -> None:
    urls = [
        f"json://127.0.0.1:{server.port}/",
        f"mailto://127.0.0.1:{mailbox.port}?from=a@example.org&to=b@example.org",
    ]
    assert try_out(find_targets(urls, None, {}, View()), View()) == ()
    assert server.objects()[0]["title"] == mailbox.mails[0]["Subject"] == f"tfcompare: a test (host {HOST})"

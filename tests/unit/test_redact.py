"""What of an URL is shown: its kind, and its host where that can be no secret."""

import re

import pytest
from apprise.plugins import N_MGR

from orchestrator.redact import WITH_HOST, mask_url

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("json://example.org/path", "json://example.org/…"),
        ("JSONS://example.org:8443", "jsons://example.org/…"),
        ("json://me:hunter2@example.org/hunter2?token=hunter2#hunter2", "json://example.org/…"),
        ("json://hunter2@example.org", "json://example.org/…"),
        ("json://gateway:9093/x", "json://gateway/…"),
        ("json://[::1]:8080/x", "json://[::1]/…"),
        ("mailtos://me:hunter2@mail.example.org?to=team@example.org&cc=you@example.org", "mailtos://mail.example.org/…"),
        ("mailto://me@example.org:hunter2@mail.example.org", "mailto://mail.example.org/…"),
        ("https://hooks.example.com/services/hunter2/hunter2", "https://hooks.example.com/…"),
        # A password with the signs in it that end a host.
        ("json://me:p@hunter2/x@example.org", "json://…"),
        ("json://me:p@hunter2?x@example.org", "json://…"),
        ("json://me:p@hunter2#x@example.org", "json://…"),
        ("json://hunter2/x@example.org", "json://…"),
        ("mailto://me:p@hunter2?pass=x@example.org", "mailto://…"),
        # A token where others have a host.
        ("slack://hunter2/B/C", "slack://…"),
        ("tgram://123456:hunter2/99", "tgram://…"),
        ("discord://hunter2/hunter2", "discord://…"),
        ("ntfy://hunter2", "ntfy://…"),
        ("sendgrid://hunter2.hunter2:me@example.org/x", "sendgrid://…"),
        ("json://hunter2 .org/x", "json://…"),
        ("json://%68unter2/x", "json://…"),
        ("json://hunter2:99999999/x", "json://…"),
        ("json://[hunter2]/", "json://…"),
        ("hunter2", "…"),
        ("json:/hunter2", "…"),
        ("hunter2-hunter2-hunter2://x", "…"),
        ("", "…"),
        ("://hunter2", "…"),
    ],
)  # fmt: skip
def test_of_an_url_only_scheme_and_host_are_shown_and_in_doubt_not_even_that(url: str, shown: str) -> None:
    assert mask_url(url) == shown
    assert SECRET not in mask_url(url)


def test_a_host_is_shown_only_of_kinds_that_have_one_there() -> None:
    native = {"http", "https"}
    templates = {
        scheme: kind.templates
        for kind in N_MGR.plugins()
        for declared in (kind.protocol, kind.secure_protocol)
        if declared
        for scheme in ((declared,) if isinstance(declared, str) else declared)
    }
    for scheme in WITH_HOST - native:
        hosts = {re.split("[/?]", one.partition("://")[2])[0].rpartition("@")[2] for one in templates[scheme]}
        assert hosts <= {"{host}", "{host}:{port}", "{host}{path}{token}", "{host}:{port}{path}{token}"}, scheme

"""Comments on pull requests that ask for a run: which words they may have, and who is heard."""

import shlex

import pytest

from orchestrator.cli.comment_request import read_comment_request
from orchestrator.errors import UsageError


def event(body: object, association: str = "MEMBER", action: str = "created") -> dict[str, object]:
    return {"action": action, "comment": {"body": body, "author_association": association}}


@pytest.mark.parametrize(
    ("body", "command", "words"),
    [
        ("/tfcompare", "run", []),
        ("/tfcompare --versions 2.15,2.16", "run", ["--versions=2.15,2.16"]),
        ("/tfcompare run 2.15 2.16 --budget 10m\r\nthanks!", "run", ["2.15", "2.16", "--budget=10m"]),
        (
            "/tfcompare 2.15 '2.15 TF_ENABLE_ONEDNN_OPTS=0 as plain' --case 'train[size=large]' --control",
            "run", ["2.15", "2.15 TF_ENABLE_ONEDNN_OPTS=0 as plain", "--case=train[size=large]", "--control"],
        ),
        ("/tfcompare upgrade 2.8 2.16 --no-remedies", "upgrade", ["2.8", "2.16", "--no-remedies"]),
        ("/tfcompare --fail-on=slower>10%,died", "run", ["--fail-on=slower>10%,died"]),
    ],
)  # fmt: skip
def test_a_member_asks_for_targets_and_cases(body: str, command: str, words: list[str]):
    request = read_comment_request(event(body))
    assert (request.command, list(request.words)) == (command, words)


@pytest.mark.parametrize("association", ["CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "NONE", "MANNEQUIN", "", "member"])
def test_nobody_else_is_heard(association: str):
    with pytest.raises(UsageError, match="only members"):
        read_comment_request(event("/tfcompare", association))


@pytest.mark.parametrize(
    "words",
    [
        "--engine venv", "--engine=venv", "--output /etc", "--workload-folder /", "--index-url https://evil.example",
        "--data x=/etc", "--notify json://evil", "--on ray://evil", "--resume last", "--requirements r.txt",
        "--python-downloads", "-o x", "-- python evil.py", "--", "--versions", "--dry-run", "--allow .",
        "'2.15 evil==1.0'", "'2.15 wheel=evil.whl'", "image=evil", "'image=evil as x'", "--target 'wheel=e.whl as x'",
        "'2.15 LD_PRELOAD=/x'", "'2.15 TF_PLUGGABLE_DEVICE_LIBRARY_PATH=/x'", "'2.15 @main'", "evil.py", "./evil.py",
        "'2.15 freeze=/etc/passwd'", "--vary keras=3.5,3.8", "--no-remedies", "bisect",
    ],
)  # fmt: skip
def test_a_comment_chooses_no_code_place_engine_or_recipient(words: str):
    if words == "bisect":
        # It is taken for a version, which does not exist; the run says so.
        assert read_comment_request(event("/tfcompare bisect")).words == ("bisect",)
        return
    with pytest.raises(UsageError):
        read_comment_request(event(f"/tfcompare {words}"))


@pytest.mark.parametrize(
    "body", ["", "please /tfcompare", "/tfcompareX", "/TFCOMPARE", None, 7, "\n/tfcompare", "> /tfcompare"]
)
def test_other_comments_ask_for_nothing(body: object):
    with pytest.raises(UsageError):
        read_comment_request(event(body))


@pytest.mark.parametrize(
    "body",
    ["/tfcompare --case 'a", "/tfcompare --case a\x1b[2J", "/tfcompare --case a\u2028b", f"/tfcompare {'2.15 ' * 900}"],
)
def test_a_line_that_is_no_plain_text_is_refused(body: str):
    with pytest.raises(UsageError):
        read_comment_request(event(body))


def test_an_edited_comment_asks_for_nothing():
    with pytest.raises(UsageError, match="not started by a new comment"):
        read_comment_request(event("/tfcompare", action="edited"))


def test_what_leaves_it_is_the_same_words_for_a_shell():
    request = read_comment_request(event('/tfcompare --case "a\'b; $(touch x) `y`"'))
    assert shlex.split(shlex.join(request.words)) == ["--case=a'b; $(touch x) `y`"]

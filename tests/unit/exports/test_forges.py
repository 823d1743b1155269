"""One comment per pull request, on GitHub and GitLab as they answer here."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.exports import forges
from tests.support.commands import called
from tests.support.forges import BOT, PERSON, TOKEN, FakeForge, fake_forge

MARKER = "<!-- tfcompare: tfcompare -->"


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    with fake_forge() as made:
        yield made


@pytest.fixture
def github(forge: FakeForge, tmp_path: Path) -> dict[str, str]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    return {
        "GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": "me/models", "GITHUB_TOKEN": TOKEN,
    }  # fmt: skip


@pytest.fixture
def gitlab(forge: FakeForge) -> dict[str, str]:
    forge.account = {"id": 9, "username": "project_42_bot"}
    return {
        "GITLAB_CI": "true", "CI_API_V4_URL": forge.url, "CI_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": TOKEN,
    }  # fmt: skip


@pytest.fixture(params=["github", "gitlab"])
def environ(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.getfixturevalue(request.param)
    return found


def kept(environ: dict[str, str], body: str, name: str = "tfcompare") -> bool:
    forge = forges.find_forge(environ)
    return forges.replace_comment(forge, name, forges.mark(name, body, forge.room))[0]


def test_the_first_run_writes_a_comment_and_later_ones_replace_it(forge: FakeForge, environ: dict[str, str]):
    forge.add("Nice work!", PERSON)
    assert not kept(environ, "slower")
    assert kept(environ, "the same")
    assert forge.bodies == ["Nice work!", f"{MARKER}\nthe same"]


def test_jobs_of_other_names_have_other_comments(forge: FakeForge, environ: dict[str, str]):
    for body in ("one", "two"):
        kept(environ, body, "cpu")
        kept(environ, body, "gpu")
    assert forge.bodies == ["<!-- tfcompare: cpu -->\ntwo", "<!-- tfcompare: gpu -->\ntwo"]


def test_a_comment_that_somebody_else_marked_is_left_alone(forge: FakeForge, environ: dict[str, str]):
    forge.add(f"{MARKER}\nmine", PERSON if "GITHUB_ACTIONS" in environ else {"id": 5, "username": "somebody"})
    assert not kept(environ, "slower")
    assert forge.bodies[0] == f"{MARKER}\nmine"


def test_a_comment_that_quotes_the_mark_is_another(forge: FakeForge, github: dict[str, str]):
    forge.add(f"> {MARKER}", BOT)
    forge.add(f"see\n{MARKER}", BOT)
    assert not kept(github, "slower")


def test_the_comment_is_found_behind_many_others(forge: FakeForge, github: dict[str, str]):
    for _ in range(250):
        forge.add("a word", PERSON)
    kept(github, "one")
    assert kept(github, "two")
    assert len(forge.comments) == 251


def test_a_token_of_a_person_replaces_what_that_person_wrote(forge: FakeForge, github: dict[str, str]):
    forge.account = PERSON
    kept(github, "one")
    forge.add(f"{MARKER}\nof a bot", BOT)
    assert kept(github, "two")
    assert forge.bodies == [f"{MARKER}\ntwo", f"{MARKER}\nof a bot"]


@pytest.mark.parametrize(("status", "advice"), [(403, "pull-requests: write"), (502, "try again later")])
def test_a_refusal_is_one_line_with_what_to_do(forge: FakeForge, github: dict[str, str], status: int, advice: str):
    forge.refuses = status, "Resource not accessible by integration"
    with pytest.raises(UsageError, match=advice) as raised:
        kept(github, "slower")
    assert str(status) in str(raised.value.headline)
    assert TOKEN not in str(raised.value.headline)


def test_a_wrong_token_is_refused(forge: FakeForge, environ: dict[str, str]):
    name = next(name for name in environ if name.endswith("TOKEN"))
    with pytest.raises(UsageError, match="401 Bad credentials"):
        kept({**environ, name: "wrong"}, "slower")
    assert forge.comments == []


def test_the_token_goes_to_no_other_place(forge: FakeForge, github: dict[str, str]):
    with fake_forge() as other:
        forge.redirects = f"{other.url}/elsewhere"
        with pytest.raises(UsageError, match="307"):
            kept(github, "slower")
        assert other.asked == []


@pytest.mark.parametrize(
    "api", ["http://127.0.0.1:9", "file:///etc/passwd", "127.0.0.1"], ids=["closed", "a file", "no address"]
)
def test_an_api_that_is_not_there_is_one_line(github: dict[str, str], api: str):
    with pytest.raises(UsageError, match="GitHub"):
        kept({**github, "GITHUB_API_URL": api}, "slower")


NO_PULL_REQUEST: dict[str, dict[str, str]] = {
    "on a desk": {},
    "a push": {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": ""},
    "a pipeline of a branch": {"GITLAB_CI": "true"},
    "a number that is none": {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7/../8"},
}


@pytest.mark.parametrize("where", NO_PULL_REQUEST)
def test_where_there_is_no_pull_request_it_says_so(where: str):
    with pytest.raises(UsageError, match="belongs to no pull request"):
        forges.find_forge(NO_PULL_REQUEST[where])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pull_request": 7}', '{"pull_request": {"number": "7"}}'])
def test_an_event_that_is_none_is_one_line(github: dict[str, str], text: str):
    Path(github["GITHUB_EVENT_PATH"]).write_text(text)
    with pytest.raises(UsageError):
        forges.find_forge(github)


MEASURED = {
    "event": "pull_request",
    "head_sha": "c0ffee",
    "head_branch": "faster & better",
    "head_repository": {"owner": {"login": "stranger"}},
    # As GitHub leaves it for a fork.
    "pull_requests": [],
}


def write_event(github: dict[str, str], run: object) -> None:
    Path(github["GITHUB_EVENT_PATH"]).write_text(json.dumps({"workflow_run": run}))


def test_a_run_of_another_workflow_is_commented_where_its_commit_is(forge: FakeForge, github: dict[str, str]):
    write_event(github, MEASURED)
    forge.pulls = [
        (5, "stranger:faster & better", "0lder"),
        (6, "other:faster & better", "c0ffee"),
        (7, "stranger:faster & better", "c0ffee"),
    ]
    assert not kept(github, "slower")
    assert kept(github, "the same")
    assert forge.bodies == [f"{MARKER}\nthe same"]


def test_a_run_of_a_commit_that_no_pull_request_has_any_more_is_not_commented(forge: FakeForge, github: dict[str, str]):
    write_event(github, MEASURED)
    forge.pulls = [(7, "stranger:faster & better", "newer")]
    with pytest.raises(UsageError, match="no open pull request from stranger:faster & better has the commit"):
        kept(github, "slower")
    assert forge.bodies == []


@pytest.mark.parametrize("run", [7, [], {}, {**MEASURED, "head_repository": None}, {**MEASURED, "head_branch": None}])
def test_an_event_of_another_workflow_that_names_no_branch_is_one_line(
    forge: FakeForge, github: dict[str, str], run: object
):
    write_event(github, run)
    with pytest.raises(UsageError, match=r"no.* pull request"):
        kept(github, "slower")
    assert forge.bodies == []


@pytest.mark.parametrize("token", ["", "a\nb: c", "ü"])
def test_a_token_that_is_none_is_told(github: dict[str, str], token: str):
    with pytest.raises(UsageError, match="GITHUB_TOKEN holds no token"):
        forges.find_forge({**github, "GITHUB_TOKEN": token})


@pytest.mark.parametrize("name", ["", "a\nb", "-->", "a  b", "x" * 61])
def test_a_name_that_would_break_the_mark_is_refused(name: str):
    with pytest.raises(UsageError, match="--name"):
        forges.mark(name, "slower", 100)


def test_what_is_too_long_loses_its_folded_part():
    body = f"### tfcompare\n\n- slower.\n\n<details>{'x' * 1000}</details>"
    marked = forges.mark("tfcompare", body, 500)
    assert marked == f"{MARKER}\n### tfcompare\n\n- slower.\n\n\nThe rest is too long for a comment."
    assert len(forges.mark("tfcompare", "x" * 1000, 500)) <= 500


def test_the_command_writes_what_it_prints_with_dry_run(
    forge: FakeForge, github: dict[str, str], made: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    for name, value in github.items():
        monkeypatch.setenv(name, value)
    words = ("comment", str(made), "--name", "gpu", "--link", "https://ci.example/42")
    assert called(monkeypatch, *words, "--dry-run") == 0
    printed = capsys.readouterr().out
    assert forge.asked == []
    head = "<!-- tfcompare: gpu -->\n### tfcompare: gpu\n\n[The whole report](<https://ci.example/42>)"
    assert printed.startswith(head)
    assert called(monkeypatch, *words) == 0
    assert "the comment was written: https://forge.example/7#100" in capsys.readouterr().err
    assert forge.bodies == [printed.removesuffix("\n")]
    assert called(monkeypatch, *words) == 0
    assert "the comment was replaced" in capsys.readouterr().err


@pytest.mark.parametrize("link", ["http://ci.example", "javascript:alert(1)", "https://ci.example/ü"])
def test_a_link_is_an_address(made: Path, monkeypatch: pytest.MonkeyPatch, capsys, link: str):
    assert called(monkeypatch, "comment", str(made), "--dry-run", "--link", link) == 2
    assert "--link" in capsys.readouterr().err


PUSHED, LATER = "2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z"


def commented(tmp_path: Path, github: dict[str, str]) -> dict[str, str]:
    """The environment of a job that a comment on the pull request has started."""
    event = {"issue": {"number": 7, "pull_request": {}}, "comment": {"created_at": LATER}}
    path = tmp_path / "comment.json"
    path.write_text(json.dumps(event))
    return {**github, "GITHUB_EVENT_PATH": str(path)}


def test_a_job_of_a_comment_belongs_to_its_pull_request(forge: FakeForge, github: dict[str, str], tmp_path: Path):
    assert not kept(commented(tmp_path, github), "slower")
    assert forge.asked[-1] == "POST /repos/me/models/issues/7/comments"


def test_a_comment_on_an_issue_belongs_to_no_pull_request(github: dict[str, str], tmp_path: Path):
    path = tmp_path / "issue.json"
    path.write_text(json.dumps({"issue": {"number": 7}, "comment": {}}))
    with pytest.raises(UsageError, match="belongs to no pull request"):
        forges.find_forge({**github, "GITHUB_EVENT_PATH": str(path)})


def test_the_commit_of_a_request_is_the_one_that_was_there(forge: FakeForge, github: dict[str, str], tmp_path: Path):
    forge.pull = {"head": {"sha": "a" * 40, "repo": {"pushed_at": PUSHED}}}
    found = forges.find_forge(commented(tmp_path, github))
    assert forges.find_commit_before(found, LATER) == "a" * 40
    # GitHub's times are whole seconds, so the order inside of one is not known.
    for moment in (PUSHED, "2026-03-01T09:00:00Z"):
        with pytest.raises(UsageError, match="pushed to after the comment"):
            forges.find_commit_before(found, moment)


@pytest.mark.parametrize(
    "pull",
    [
        {"head": {"sha": "a" * 40, "repo": None}},
        {"head": {"sha": "a" * 40, "repo": {"pushed_at": None}}},
        {"head": {"sha": "a" * 40, "repo": {"pushed_at": "2026-03-01T10:00:00"}}},
        {"head": {"sha": "main", "repo": {"pushed_at": PUSHED}}},
        {"head": {"sha": "a" * 40 + "\nrun=1", "repo": {"pushed_at": PUSHED}}},
        {"head": []},
        ["head"],
    ],
)
def test_a_pull_request_without_a_known_push_is_not_measured(
    forge: FakeForge, github: dict[str, str], tmp_path: Path, pull: object
):
    forge.pull = pull
    with pytest.raises(UsageError, match=r"GitHub (does not say|names no commit)"):
        forges.find_commit_before(forges.find_forge(commented(tmp_path, github)), LATER)


@pytest.mark.parametrize("moment", [None, "", "yesterday", 7])
def test_a_comment_without_a_time_is_not_measured(
    forge: FakeForge, github: dict[str, str], tmp_path: Path, moment: object
):
    forge.pull = {"head": {"sha": "a" * 40, "repo": {"pushed_at": PUSHED}}}
    with pytest.raises(UsageError, match="does not say"):
        forges.find_commit_before(forges.find_forge(commented(tmp_path, github)), moment)

"""Keeps one comment on the pull request that a CI job belongs to, over the API of GitHub or GitLab.

On GitHub, it also finds the commit that a pull request had when a member asked for a run in a comment.

A comment is recognised by an invisible first line, and only one that the same account wrote is replaced: anybody can
write that line. The token goes to the API that the CI system names, and nowhere else.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.terminal import strict_json

TIMEOUT_S = 30
PER_PAGE, MOST_PAGES = 100, 20
MOST_BYTES = 2**24
NAME = re.compile(r"[\w.-]+( [\w.-]+)*", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
LONGEST_NAME = 60
NO_PULL_REQUEST = (
    "this job belongs to no pull request: GitHub Actions names one in GITHUB_EVENT_PATH, GitLab in "
    "CI_MERGE_REQUEST_IID; --dry-run prints the comment"
)


@dataclass(frozen=True, kw_only=True)
class Forge:
    """The comments of one pull request: the addresses of their list and of each one, and the headers for access."""

    name: str
    api: str
    comments: str
    comment: str
    headers: Mapping[str, str]
    # This HTTP method replaces a comment.
    replaces: str
    # A comment has at most this many characters.
    room: int
    advice: str
    # The address of the pull request; only GitHub's is needed.
    pull: str = ""


def find_forge(environ: Mapping[str, str]) -> Forge:
    """Return the forge that has the job's pull request, or raise UsageError."""
    if environ.get("GITHUB_ACTIONS") == "true":
        return _github(environ)
    if environ.get("GITLAB_CI") == "true":
        return _gitlab(environ)
    raise UsageError(NO_PULL_REQUEST)


def _github(environ: Mapping[str, str]) -> Forge:
    event = read_event(environ)
    api = environ.get("GITHUB_API_URL", "https://api.github.com")
    repository = f"{api}/repos/{quote(environ.get('GITHUB_REPOSITORY', ''))}"
    request, measured, issue = event.get("pull_request"), event.get("workflow_run"), event.get("issue")
    if isinstance(issue, dict) and isinstance(issue.get("pull_request"), dict):
        # This is a comment on the pull request, which GitHub counts as an issue.
        request = issue
    if not isinstance(request, dict) and not isinstance(measured, dict):
        raise UsageError(NO_PULL_REQUEST)
    token = _token(environ, "GITHUB_TOKEN", "pass it as `env: GITHUB_TOKEN: ${{ github.token }}`")
    forge = Forge(
        name="GitHub",
        api=api,
        comments=f"{repository}/issues/{{}}/comments",
        comment=f"{repository}/issues/comments/{{}}",
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
        replaces="PATCH",
        room=65_000,
        advice="the job needs `permissions: pull-requests: write`; for a pull request from a fork, only a job "
        "`on: workflow_run` can have it",
    )
    number = request.get("number") if isinstance(request, dict) else _find_measured(forge, repository, measured)
    if not isinstance(number, int):
        raise UsageError(NO_PULL_REQUEST)
    return replace(forge, comments=forge.comments.format(number), pull=f"{repository}/pulls/{number}")


def read_event(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the event that a job of GitHub Actions belongs to; it is empty if there is none."""
    path = environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(files.read_named(Path(path), MOST_BYTES)) if path else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH={path} cannot be read: {error}") from error
    return event if isinstance(event, dict) else {}


def find_commit_before(forge: Forge, moment: object) -> str:
    """Return the commit of the pull request; raise UsageError if something was pushed since this moment of an event.

    The dates of a commit are whatever its author wrote, so only GitHub's own record of the last push counts. It is
    about the whole repository of the branch, and to the second.
    """
    pull = _call(forge, "GET", forge.pull)
    try:
        head = pull["head"]
        commit, pushed = str(head["sha"]), datetime.fromisoformat(head["repo"]["pushed_at"])
        is_later = pushed >= datetime.fromisoformat(str(moment))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError("GitHub does not say when the branch of this pull request was pushed") from error
    if not COMMIT.fullmatch(commit):
        raise UsageError(f"GitHub names no commit of this pull request: {commit!r}")
    if is_later:
        raise UsageError(
            "its repository was pushed to after the comment: read the new commit, and post the comment again"
        )
    return commit


def _find_measured(forge: Forge, repository: str, run: Any) -> int:
    """Return the open pull request that another workflow's run has measured.

    Its number is never taken from the files of that run, which code of the pull request may have written. If the pull
    request comes from a fork, GitHub names only its branch and its commit.
    """
    try:
        head = f"{run['head_repository']['owner']['login']}:{run['head_branch']}"
        found = _call(forge, "GET", f"{repository}/pulls?{urlencode({'state': 'open', 'head': head})}")
        return next(int(pull["number"]) for pull in found if pull["head"]["sha"] == run["head_sha"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(NO_PULL_REQUEST) from error
    except StopIteration as error:
        raise UsageError(f"no open pull request from {head} has the commit that was measured: nothing to do") from error


def _gitlab(environ: Mapping[str, str]) -> Forge:
    number = environ.get("CI_MERGE_REQUEST_IID", "")
    if not re.fullmatch(r"\d+", number, re.ASCII):
        raise UsageError(NO_PULL_REQUEST)
    api = environ.get("CI_API_V4_URL", "")
    notes = f"{api}/projects/{quote(environ.get('CI_PROJECT_ID', ''))}/merge_requests/{number}/notes"
    token = _token(environ, "GITLAB_TOKEN", "a project access token with the scope `api`, as a masked variable")
    return Forge(
        name="GitLab",
        api=api,
        comments=notes,
        comment=f"{notes}/{{}}",
        headers={"PRIVATE-TOKEN": token},
        replaces="PUT",
        room=900_000,
        advice="the token needs the scope `api` and the role Reporter",
    )


def _token(environ: Mapping[str, str], name: str, advice: str) -> str:
    token = environ.get(name, "")
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(f"{name} holds no token: {advice}")
    return token


def mark(name: str, body: str, room: int) -> str:
    """Return a comment that is recognised by its name, without its folded part if there is no room for that."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(f"--name {name!r}: up to {LONGEST_NAME} letters, digits, dots, dashes and single blanks")
    marked = f"{_marker(name)}\n{body}"
    if len(marked) <= room:
        return marked
    short = marked.partition("\n<details>")[0]
    return f"{short[: room - 100]}\n\nThe rest is too long for a comment."


def _marker(name: str) -> str:
    return f"<!-- tfcompare: {name} -->"


def replace_comment(forge: Forge, name: str, marked: str) -> tuple[bool, str]:
    """Replace or create the comment with this name; return whether there was one, and its address."""
    own = _find_own(forge, name)
    if own is None:
        return False, _address(_call(forge, "POST", forge.comments, {"body": marked}))
    return True, _address(_call(forge, forge.replaces, forge.comment.format(own), {"body": marked}))


def _find_own(forge: Forge, name: str) -> int | None:
    try:
        answer = _request(forge, "GET", f"{forge.api}/user")
    except HTTPError:
        answer = None
    account = answer.get("id") if isinstance(answer, dict) else None
    for comment in _list_comments(forge):
        writer = comment.get("user") or comment.get("author")
        text, number = comment.get("body"), comment.get("id")
        if not isinstance(writer, dict) or not isinstance(text, str) or not isinstance(number, int):
            continue
        # The account of a job's token cannot be queried; its comments are those of a bot.
        is_own = writer.get("id") == account if isinstance(account, int) else writer.get("type") == "Bot"
        if is_own and text.partition("\n")[0].rstrip("\r") == _marker(name):
            return number
    return None


def _list_comments(forge: Forge) -> Iterator[dict[str, Any]]:
    for page in range(1, MOST_PAGES + 1):
        found = _call(forge, "GET", f"{forge.comments}?per_page={PER_PAGE}&page={page}")
        if not isinstance(found, list):
            return
        yield from (comment for comment in found if isinstance(comment, dict))
        if len(found) < PER_PAGE:
            return


def _address(answer: Any) -> str:
    found = answer.get("html_url") if isinstance(answer, dict) else None
    return found if isinstance(found, str) else ""


def _call(forge: Forge, method: str, url: str, content: object = None) -> Any:
    try:
        return _request(forge, method, url, content)
    except HTTPError as error:
        try:
            reason = json.loads(error.read(MOST_BYTES)).get("message", "")
        except (ValueError, AttributeError, OSError, HTTPException):
            reason = ""
        why = f"{error.code} {reason}".strip()
        advice = forge.advice if error.code in (401, 403, 404) else "try again later"
        raise UsageError(f"{forge.name} refused the comment ({why}): {advice}") from error


class _NoRedirects(HTTPRedirectHandler):
    """A handler that follows no redirects, since one would carry the token elsewhere."""

    def redirect_request(self, *details: Any) -> None:
        return None


def _request(forge: Forge, method: str, url: str, content: object = None) -> Any:
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{forge.name}'s API has no usable address: {url}")
    body = None if content is None else strict_json.dump(content).encode()
    headers = {**forge.headers, "Content-Type": "application/json", "User-Agent": "tfcompare"}
    request = Request(url, data=body, headers=headers, method=method)  # noqa: S310 - the scheme was checked above
    try:
        with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(MOST_BYTES) or b"null")
    except HTTPError:
        raise
    except (URLError, TimeoutError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise UsageError(f"{forge.name} does not answer at {forge.api} ({reason}); try again later") from error

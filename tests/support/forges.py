"""The APIs of GitHub and GitLab on this machine, as far as comments of one pull request go."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "s3cret-of-the-job"
GITHUB = re.compile(r"/repos/me/models/issues/(?:7/comments|comments/(?P<id>\d+))")
GITLAB = re.compile(r"/projects/42/merge_requests/7/notes(?:/(?P<id>\d+))?")
BOT = {"id": 41898282, "login": "github-actions[bot]", "type": "Bot"}
PERSON = {"id": 5, "login": "somebody", "type": "User"}


@dataclass
class FakeForge:
    """Its comments, and how it answers."""

    port: int = 0
    comments: list[dict[str, Any]] = field(default_factory=list)
    # Open pull requests: the number, the branch with its owner, and the commit.
    pulls: list[tuple[int, str, str]] = field(default_factory=list)
    # The pull request with the comments, with its last push.
    pull: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # The account of the token, if it may be asked for.
    account: dict[str, Any] | None = None
    # An answer for all that writes instead of doing it, as a status and a message; or where to go instead.
    refuses: tuple[int, str] | None = None
    redirects: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, body: str, writer: dict[str, Any]) -> None:
        name = "author" if "username" in writer else "user"
        self.comments.append({"id": len(self.comments) + 100, "body": body, name: writer})

    @property
    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    def answer(self, method: str, path: str, content: Any) -> tuple[int, Any]:
        address = urlsplit(path)
        if address.path == "/user":
            return (200, self.account) if self.account else (403, {"message": "Resource not accessible by integration"})
        if address.path == "/repos/me/models/pulls/7" and method == "GET":
            return (200, self.pull) if self.pull else (404, {"message": "Not Found"})
        if address.path == "/repos/me/models/pulls" and method == "GET":
            asked = parse_qs(address.query)
            assert asked["state"] == ["open"]
            of_head = [pull for pull in self.pulls if pull[1] == asked["head"][0]]
            return 200, [{"number": number, "head": {"sha": commit}} for number, _, commit in of_head]
        found = GITHUB.fullmatch(address.path) or GITLAB.fullmatch(address.path)
        if not found:
            return 404, {"message": "Not Found"}
        if method == "GET":
            asked = parse_qs(address.query)
            count, page = int(asked["per_page"][0]), int(asked["page"][0])
            return 200, self.comments[(page - 1) * count : page * count]
        if self.refuses:
            return self.refuses[0], {"message": self.refuses[1]}
        if found["id"]:
            [comment] = [one for one in self.comments if one["id"] == int(found["id"])]
            comment["body"] = content["body"]
            return 200, comment
        self.add(content["body"], self.account or BOT)
        self.comments[-1]["html_url"] = f"https://forge.example/7#{self.comments[-1]['id']}"
        return 201, self.comments[-1]


@contextmanager
def fake_forge() -> Iterator[FakeForge]:
    forge = FakeForge()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            forge.asked.append(f"{self.command} {self.path}")
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"null")
            let_in = f"Bearer {TOKEN}" == self.headers["Authorization"] or self.headers["PRIVATE-TOKEN"] == TOKEN
            if forge.redirects:
                self.send_response(307)
                self.send_header("Location", forge.redirects)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, answer = (
                forge.answer(self.command, self.path, content) if let_in else (401, {"message": "Bad credentials"})
            )
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield forge
    server.shutdown()
    server.server_close()
    thread.join()

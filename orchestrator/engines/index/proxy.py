"""A package index on this machine's loopback for the duration of builds.

It passes on what `--index-url` names and what is in `--wheelhouse`. Builds know it by a name that never changes, and
reach it as their proxy. So neither the address of the real index nor its password is in an image, in its history, in a
key of the builder's cache, in a log or in a list of processes.
"""

import base64
import os
import secrets
import shutil
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

import requests
from packaging.utils import canonicalize_name
from urllib3.exceptions import HTTPError

from orchestrator.engines.build_errors import MARK
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.index.simple_api import Link, make_index_page
from orchestrator.engines.index.upstream import Trouble, Upstream, Wheelhouse, reason

# `.invalid` resolves nowhere: a request that bypasses this server reaches no other.
NAME = "index.tfcompare.invalid"
USER = "build"
CHUNK = 1 << 18


class Body(Protocol):
    """The contents of a file that is being sent."""

    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class Index:
    """An index server that runs from its first build until it is closed.

    It does nothing if neither an index nor a folder was named.
    """

    def __init__(self, index_url: str | None, wheelhouse: Path | None, ca_bundle: Path | None) -> None:
        self._upstream = Upstream(index_url, ca_bundle) if index_url else None
        self._wheelhouse = Wheelhouse(wheelhouse) if wheelhouse else None
        # This is set only if all packages come from the wheelhouse.
        self.wheelhouse = None if index_url else wheelhouse
        self._logs: dict[str, BuildLog] = {}
        self._files: dict[str, Link | Path] = {}
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def variables(self, log: BuildLog) -> dict[str, str]:
        """Return the variables that make pip ask only this index, which reports problems in `log`."""
        if not (self._upstream or self._wheelhouse):
            return {}
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._logs[token] = log
            self._server = self._server or _Server(self)
            proxy = f"http://{USER}:{token}@127.0.0.1:{self._server.server_port}"
        return {
            "PIP_INDEX_URL": f"http://{NAME}/simple",
            "PIP_TRUSTED_HOST": NAME,
            "PIP_CONFIG_FILE": os.devnull,
            **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), proxy),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
        }

    def log_of(self, authorization: str | None) -> BuildLog | None:
        """Return the log of the build that asks, or None.

        Other users who can reach this machine's loopback have no token.
        """
        kind, _, encoded = (authorization or "").partition(" ")
        with suppress(ValueError):
            if kind.lower() == "basic":
                return self._logs.get(base64.b64decode(encoded).decode().partition(":")[2])
        return None

    def project_page(self, project: str, log: BuildLog) -> str:
        """Return the page of a project, or '' if there are no files for it."""
        project = canonicalize_name(project)
        links: dict[str, Link] = {}
        for link, path in self._wheelhouse.files(project).items() if self._wheelhouse else ():
            links[link.filename] = link
            self._files[link.id] = path
        try:
            for link in self._upstream.links(project) if self._upstream else ():
                if links.setdefault(link.filename, link) == link:
                    self._files[link.id] = link
        except Trouble as trouble:
            log.line(f"{MARK}{trouble}")
        return make_index_page(links.values()) if links else ""

    def file(self, id: str, log: BuildLog) -> tuple[Body, str] | None:
        """Return the contents of a file that a page has offered, and its size if known."""
        what = self._files.get(id)
        if isinstance(what, Path):
            return what.open("rb"), str(what.stat().st_size)
        if what is None or self._upstream is None:
            return None
        try:
            response = self._upstream.file(what)
        except Trouble as trouble:
            log.line(f"{MARK}{trouble} ({what.filename})")
            return None
        return _Response(response, self._upstream.host), response.headers.get("Content-Length", "")

    def close(self) -> None:
        if self._server:
            self._server.stop()
        if self._upstream:
            self._upstream.close()


class _Response:
    def __init__(self, response: requests.Response, host: str) -> None:
        self._response = response
        self._host = host

    def read(self, size: int = -1, /) -> bytes:
        try:
            data: bytes = self._response.raw.read(size)
        except (HTTPError, OSError) as error:
            raise Trouble(f"the connection to {self._host} broke: {reason(error)}") from error
        return data

    def close(self) -> None:
        self._response.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, index: Index) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.index = index
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a pip that was ended in the middle of a file; the result of its build is reported elsewhere."""

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if (log := self._log()) is None:
            return
        url = urlsplit(self.path)
        if url.hostname != NAME:
            self._refuse(url.hostname or "", log)
            return
        match [unquote(part) for part in url.path.strip("/").split("/")]:
            case ["simple", project]:
                text = self.server.index.project_page(project, log)
                self._answer(HTTPStatus.OK if text else HTTPStatus.NOT_FOUND, text)
            case ["file", id, filename]:
                self._send(id, filename, log)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def do_CONNECT(self) -> None:
        if log := self._log():
            self._refuse(self.path.rpartition(":")[0], log)

    def _log(self) -> BuildLog | None:
        log = self.server.index.log_of(self.headers.get("Proxy-Authorization"))
        if log is None:
            self._answer(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)
        return log

    def _refuse(self, host: str, log: BuildLog) -> None:
        log.line(f"{MARK}{quote(host)} is not served here")
        self._answer(HTTPStatus.FORBIDDEN)

    def _send(self, id: str, filename: str, log: BuildLog) -> None:
        file = self.server.index.file(id, log)
        if file is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        body, length = file
        try:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            if length:
                self.send_header("Content-Length", length)
            self.end_headers()
            shutil.copyfileobj(body, self.wfile, CHUNK)
        except Trouble as trouble:
            log.line(f"{MARK}{trouble} ({filename})")
        finally:
            body.close()

    def _answer(self, status: HTTPStatus, text: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            self.send_header("Proxy-Authenticate", "Basic")
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: stderr belongs to the progress of the run."""

"""Servers on this machine that messages arrive at: a web server that answers as it is told to, and a mail server."""

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Inbox:
    """What a server received, and how it answers.

    `answers` are used up one by one, the last one for ever: a status, or seconds to hang, or raw bytes.
    """

    port: int = 0
    answers: list[int | float | bytes] = field(default_factory=lambda: [200])
    got: list[tuple[str, bytes]] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    def next(self) -> int | float | bytes:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def web() -> Iterator[Inbox]:
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.got.append((self.path, body))
            answer = inbox.next()
            if isinstance(answer, float):
                time.sleep(answer)
                answer = 200
            if isinstance(answer, bytes):
                self.wfile.write(answer)
                return
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            # Whoever has waited long enough is gone when the answer comes.
            with suppress(ConnectionError):
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server, inbox):
        yield inbox


@contextmanager
def mail() -> Iterator[Inbox]:
    inbox = Inbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line.split()[0].upper()
                if verb == "RCPT":
                    address = line[line.index("<") + 1 : line.index(">")]
                    inbox.recipients.append(address)
                    self.say(inbox.refused.get(address, "250 fine"))
                elif verb == "AUTH":
                    self.say("535 5.7.8 no such user or password")
                elif verb == "EHLO":
                    self.say("250-here\r\n250 AUTH PLAIN")
                elif verb == "DATA":
                    self.say("354 go on")
                    inbox.mails.append(self.read())
                    self.say("250 taken")
                else:
                    self.say("221 bye" if verb == "QUIT" else "250 fine")
                if verb == "QUIT":
                    return

        def read(self) -> EmailMessage:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            read = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(read, EmailMessage)
            return read

        def say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server, inbox):
        yield inbox


@contextmanager
def _serving(server: socketserver.TCPServer, inbox: Inbox) -> Iterator[None]:
    inbox.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A process that does one thing on a host, here or behind ssh, and answers. It ends early if nothing waits for it."""

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from orchestrator.child_process import Process, end_group, has_ended
from orchestrator.errors import ContractBroken
from orchestrator.fleet.model import SendMessage
from orchestrator.fleet.packets import Packet, read_packet, write_packet

# A host that hears nothing for SILENT_S ends its work; the command writes a line to it every BEAT_S.
SILENT_S, BEAT_S = 30.0, 5.0
# A process that has sent everything has this long to end.
CLOSING_S = 5.0
# Only the last bytes of its stderr are kept.
MOST_PRINTED = 2**12


class HostProcess:
    def __init__(
        self,
        words: Sequence[str],
        question: Packet,
        tell: SendMessage,
        *,
        environment: Mapping[str, str] | None = None,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self.answer: Packet | None = None
        # This says why there is no answer.
        self.reason = ""
        self.ended = threading.Event()
        self._tell = tell
        self._at_end = at_end
        self._unwanted = threading.Event()
        self._printed = b""
        self._process: Process | None = None
        pipe = subprocess.PIPE
        try:
            # An interrupt at the terminal must not reach it: the command ends it politely.
            process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
        except OSError as error:
            self.reason = f"{words[0]} cannot be started: {error.strerror or error}"
            self.ended.set()
            at_end()
            return
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        errors = threading.Thread(target=self._read_errors, args=(process.stderr,), daemon=True)
        errors.start()
        threading.Thread(target=self._ask, args=(question, process.stdin), daemon=True).start()
        threading.Thread(target=self._listen, args=(process, process.stdout, errors), daemon=True).start()

    def end(self) -> None:
        """Let the process know that its answer is not wanted, so that it frees what it holds and ends."""
        self._unwanted.set()

    def kill(self) -> None:
        self._unwanted.set()
        if self._process:
            end_group(self._process)

    def _ask(self, question: Packet, stdin: IO[bytes]) -> None:
        with suppress(OSError, ValueError), stdin:
            write_packet(stdin, question)
            while not self._unwanted.wait(BEAT_S):
                stdin.write(b"\n")
                stdin.flush()

    def _listen(self, process: Process, stdout: IO[bytes], errors: threading.Thread) -> None:
        try:
            while self.answer is None and (packet := read_packet(stdout)):
                if packet.kind == "answer":
                    self.answer = packet
                else:
                    self._tell(packet.text, packet.contents)
        except ContractBroken as error:
            self.reason = error.headline
            end_group(process)
        finally:
            stdout.close()
            self._unwanted.set()
            has_ended(process, CLOSING_S)
            end_group(process)
            errors.join(CLOSING_S)
            last = self._printed.decode("utf-8", "replace").strip().splitlines()
            self.reason = self.reason or (last[-1] if last else "its process ended and said nothing")
            self.ended.set()
            self._at_end()

    def _read_errors(self, stderr: IO[bytes]) -> None:
        with stderr:
            while data := stderr.read1(MOST_PRINTED):  # type: ignore[attr-defined]
                self._printed = (self._printed + data)[-MOST_PRINTED:]

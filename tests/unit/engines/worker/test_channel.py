"""Lines are whole however they arrive, and an ended worker says how it ended."""

import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator import contract
from orchestrator.contract import ContractError
from orchestrator.engines.worker import channel as channels
from orchestrator.engines.worker import limits
from orchestrator.engines.worker.channel import ChannelClosed, ChannelTimeout, Lines, ProcessChannel, describe_exit

PATIENCE_S = 30.0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (1, "exit code 1"),
        (127, "exit code 127"),
        (128, "exit code 128"),
        (-9, "killed by SIGKILL (often the kernel, out of memory)"),
        (137, "killed by SIGKILL (often the kernel, out of memory)"),
        (-11, "killed by SIGSEGV"),
        (139, "killed by SIGSEGV"),
        (143, "killed by SIGTERM"),
        (255, "exit code 255"),
    ],
)
def test_an_exit_code_in_words(code: int, words: str):
    """Popen says -9 and a shell or a container 137; both are the same signal."""
    assert describe_exit(code) == words


CHUNKS = {
    "at once": [b"one\ntwo\n"],
    "byte by byte": [bytes([byte]) for byte in b"one\ntwo\n"],
    "across": [b"on", b"e\ntw", b"o\n"],
    "empty chunks": [b"", b"one\n", b"", b"two\n", b""],
}


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_lines_are_cut_where_they_end_and_not_where_chunks_do(chunks: list[bytes]):
    lines = Lines()
    for chunk in chunks:
        lines.feed(chunk)
    assert [lines.take(0), lines.take(0)] == ["one", "two"]
    with pytest.raises(ChannelTimeout):
        lines.take(0)


def test_a_line_of_megabytes_comes_as_one():
    """A profile is one; copied anew with each chunk it would take minutes."""
    lines, chunk = Lines(), b"x" * 2**14
    lines.longest = contract.LONGEST_LARGE_LINE
    for _ in range(2**12):
        lines.feed(chunk)
    lines.feed(b"\nnext\n")
    assert len(lines.take(0) or "") == 2**26
    assert lines.take(0) == "next"


def filled(longest: int) -> Lines:
    lines = Lines()
    lines.longest = longest
    for _ in range(longest // 2**20):
        lines.feed(b"x" * 2**20)
    return lines


@pytest.mark.parametrize("longest", [contract.LONGEST_LINE, contract.LONGEST_LARGE_LINE])
def test_a_line_of_the_longest_length_is_taken_and_a_longer_one_is_not(longest: int):
    lines = filled(longest)
    lines.feed(b"\n")
    assert len(lines.take(0) or "") == longest
    lines = filled(longest)
    words = f"a line of more than {longest >> 20} MiB"
    with pytest.raises(ContractError, match=words):
        lines.feed(b"x\n")
    for _ in range(2):
        with pytest.raises(ContractError, match=words):
            lines.take(0)
    assert lines._rest == [], "what was taken in is given back"


def test_lines_that_nothing_asked_for_are_not_kept():
    lines = Lines()
    with pytest.raises(ContractError, match="more than 16 lines that nothing asked for"):
        lines.feed(b"\n" * 10**6)
    assert [lines.take(0) for _ in range(17)] == [""] * 17
    with pytest.raises(ContractError, match="more than 16 lines"):
        lines.take(0)


def test_a_letter_that_is_cut_in_two_is_whole_again():
    lines = Lines()
    for byte in "µ\n".encode():
        lines.feed(bytes([byte]))
    assert lines.take(0) == "µ"


def test_what_is_no_utf8_arrives_and_says_so():
    lines = Lines()
    lines.feed(b"\xff\n")
    assert lines.take(0) == "\N{REPLACEMENT CHARACTER}"


def test_the_end_stays_the_end():
    """Every later reader learns of it too; half a line before it is no line."""
    lines = Lines()
    lines.feed(b"last\nhalf")
    lines.end()
    assert [lines.take(0), lines.take(0), lines.take(0)] == ["last", None, None]


ECHO = "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)"


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    started = []

    def run(source: str, **options: Any) -> ProcessChannel:
        started.append(ProcessChannel([sys.executable, "-c", source], {}, tmp_path / "log", **options))
        return started[-1]

    yield run
    for channel in started:
        channel.close()


def test_a_process_is_talked_to_in_lines(start):
    channel = start(ECHO)
    channel.send("hello\n")
    assert channel.receive(PATIENCE_S) == "HELLO"


def test_a_process_that_ends_is_known_by_its_ending(start):
    with pytest.raises(ChannelClosed, match=r"^exit code 3$"):
        start("raise SystemExit(3)").receive(PATIENCE_S)
    with pytest.raises(ChannelClosed, match=r"^killed by SIGSEGV$"):
        start("import os; os.kill(os.getpid(), 11)").receive(PATIENCE_S)


def test_what_a_process_said_before_its_end_is_heard_first(start):
    channel = start("print('a'); print('b'); raise SystemExit(3)")
    assert [channel.receive(PATIENCE_S), channel.receive(PATIENCE_S)] == ["a", "b"]
    with pytest.raises(ChannelClosed, match="exit code 3"):
        channel.receive(PATIENCE_S)


def test_a_process_that_says_nothing_is_a_timeout(start):
    with pytest.raises(ChannelTimeout):
        start("input()").receive(0.01)


def test_its_stderr_goes_to_the_log(start, tmp_path: Path):
    channel = start("import sys; print('careful', file=sys.stderr); input()")
    channel.close()
    assert (tmp_path / "log").read_text().startswith("careful\n")


@pytest.mark.parametrize("text", ["b'x' * 65536", "b'\\n' * 65536"], ids=["a line without end", "lines without end"])
def test_a_process_that_writes_without_end_is_not_listened_to(start, text: str):
    channel = start(f"import os\nwhile True: os.write(1, {text})")
    with pytest.raises(ContractError, match="more than"):
        list(iter(lambda: channel.receive(PATIENCE_S), None))
    channel._reader.join(PATIENCE_S)
    assert not channel._reader.is_alive()


def test_an_answer_may_be_long_only_where_a_long_one_was_asked_for(start):
    channel = start("for line in open(0): print('x' * int(line), flush=True)")
    channel.send(f"{2**21}\n", contract.LONGEST_LARGE_LINE)
    assert len(channel.receive(PATIENCE_S)) == 2**21
    channel.send(f"{2**21}\n")
    with pytest.raises(ContractError, match="a line of more than 1 MiB"):
        channel.receive(PATIENCE_S)


def test_every_user_but_root_has_a_limit_of_processes(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernel would not hold root to it, and another user needs no rights to lower it."""
    pid = start("input()").pid
    before = resource.prlimit(pid, resource.RLIMIT_NPROC)
    monkeypatch.setattr("os.getuid", lambda: 0)
    channels._limit_tasks(pid, 100)
    assert resource.prlimit(pid, resource.RLIMIT_NPROC) == before
    monkeypatch.setattr("os.getuid", lambda: 1000)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/loadavg").write_text("0.5 0.5 0.5 2/340 1234\n")
    channels._limit_tasks(pid, 100, tmp_path)
    assert resource.prlimit(pid, resource.RLIMIT_NPROC) == (440, 440)
    channels._limit_tasks(pid, 200, tmp_path)
    assert resource.prlimit(pid, resource.RLIMIT_NPROC) == (440, 440), "it is never raised"


def test_a_process_and_those_that_it_starts_write_no_file_that_is_too_large(start, tmp_path: Path):
    """An error, and no signal that ends a worker with all that it holds."""
    channel = start(
        f"""
import os, subprocess, sys
input()
file = os.open({str(tmp_path / "large")!r}, os.O_CREAT | os.O_WRONLY)
os.lseek(file, {contract.LARGEST_FILE - 1}, 0)
try:
    print(os.write(file, b"xx"), os.write(file, b"x"))
except OSError as error:
    print(error.strerror)
print(subprocess.check_output([sys.executable, "-c", "import resource as r; print(r.getrlimit(r.RLIMIT_FSIZE)[1])"]))
"""
    )
    channel.send("now\n")
    assert channel.receive(PATIENCE_S) == "File too large"
    assert channel.receive(PATIENCE_S) == str(f"{contract.LARGEST_FILE}\n".encode())
    assert (tmp_path / "large").stat().st_size == contract.LARGEST_FILE


def test_a_log_keeps_its_end_however_much_is_written(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MOST_LOG_BYTES", 10_000)
    monkeypatch.setattr(limits, "KEPT_LOG_BYTES", 5_000)
    channel = start("import os\nfor number in range(30_000): os.write(2, b'line %d\\n' % number)\nprint('done')")
    assert channel.receive(PATIENCE_S) == "done"
    channel.close()
    text = (tmp_path / "log").read_text()
    assert len(text) < 10_000
    assert text.startswith("[tfcompare cut ")
    assert text.endswith("line 29998\nline 29999\n")


def test_a_log_that_has_ended_holds_nothing_that_a_terminal_obeys(start, tmp_path: Path):
    start(r"import os; os.write(2, b'\x1b]52;c;bHM=\x07\tone\r\ncaf\xc3\xa9\n')").close()
    cleaned = "\\x1b]52;c;bHM=\\x07\tone\ncaf\u00e9\n"
    assert (tmp_path / "log").read_text() == cleaned
    start(r"import os; os.write(2, b'two\x1b[0m\n')").close()
    assert (tmp_path / "log").read_text() == cleaned + "two\n"


def test_a_log_stays_small_though_its_cleaning_makes_it_longer(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MOST_LOG_BYTES", 10_000)
    monkeypatch.setattr(limits, "KEPT_LOG_BYTES", 5_000)
    start(r"import os; os.write(2, b'\x1b' * 9_000 + b'end\n')").close()
    text = (tmp_path / "log").read_text()
    assert len(text) < 6_000
    assert text.startswith("[tfcompare cut")
    assert text.endswith(r"\x1b\x1bend" + "\n")


def test_a_log_is_cut_while_its_process_writes(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channels, "LOOK_S", 0.01)
    monkeypatch.setattr(limits, "MOST_LOG_BYTES", 10_000)
    monkeypatch.setattr(limits, "KEPT_LOG_BYTES", 5_000)
    source = f"import os\nwhile b'cut' not in open({str(tmp_path / 'log')!r}, 'rb').read(): os.write(2, b'x' * 5000)"
    channel = start(f"{source}\nprint('cut')")
    assert channel.receive(PATIENCE_S) == "cut"


def test_too_much_in_the_results_is_told_while_an_answer_is_awaited(
    start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(channels, "LOOK_S", 0.01)
    (tmp_path / "results").mkdir()
    source = "import os, time\nos.chdir({!r})\nfor number in range(600): open(str(number), 'w')\ntime.sleep(600)"
    channel = start(source.format(str(tmp_path / "results")), results=tmp_path / "results")
    with pytest.raises(ContractError, match="its results folder holds more than 500 files"):
        channel.receive(PATIENCE_S)


def test_what_it_leaves_in_its_temporary_folder_goes_with_it(start):
    channel = start("import tempfile; print(tempfile.mkstemp()[1]); input()")
    left = Path(channel.receive(PATIENCE_S))
    assert left.exists()
    channel.close()
    assert not left.parent.exists()


def test_a_program_that_is_not_there_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="no/such/python"):
        ProcessChannel(["no/such/python"], {}, tmp_path / "log")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_sending_to_the_dead_tells_how_they_died(start):
    channel = start("raise SystemExit(3)")
    with pytest.raises(ChannelClosed):
        channel.receive(PATIENCE_S)
    with pytest.raises(ChannelClosed, match="exit code 3"):
        channel.send("are you there?\n")


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.close(1)
    time.sleep(600)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_closing_ends_the_whole_group_and_may_be_done_twice(start):
    """A child of the worker holds no pipe of ours open and does not outlive it."""
    channel = start(STUBBORN)
    group = int(channel.receive(PATIENCE_S))
    channel.close()
    channel.close()
    assert group == channel.pid
    # A signal is sent at once and obeyed a little later.
    for _ in range(1000):
        if not members(group):
            break
        time.sleep(0.01)
    assert members(group) == []


def members(group: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(own) == group and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def test_a_worker_is_in_a_group_of_its_own_so_that_ctrl_c_is_for_the_host_alone(start):
    channel = start("import os; print(os.getpgrp(), os.getpid())")
    group, own = channel.receive(PATIENCE_S).split()
    assert group == own
    assert int(group) != os.getpgrp()


# Leaves a process in a session of its own behind, which keeps the pipe open.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
"""


def test_closing_does_not_wait_for_a_daemon_that_a_worker_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channels, "EXIT_S", 0.1)
    channel = ProcessChannel([sys.executable, "-c", DAEMON], dict(os.environ), tmp_path / "log")
    daemon = int(channel.receive(PATIENCE_S))
    begun = time.monotonic()
    channel.close()
    channel.close()
    assert time.monotonic() - begun < 30
    os.kill(daemon, signal.SIGKILL)
    channel._reader.join(PATIENCE_S)
    assert channel._stdout.closed

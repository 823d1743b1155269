"""One night at a time on a machine, told from one that has ended however it ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.nightly.lock import hold, holder

HOLDS = (
    "import sys, time; from pathlib import Path; from orchestrator.nightly.lock import hold\n"
    "with hold(Path(sys.argv[1]), about='elsewhere'): print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def elsewhere(tmp_path: Path):
    """Another process that holds it."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_one_is_refused_and_told_of_the_first(tmp_path, elsewhere):
    found = holder(tmp_path)
    assert found is not None
    assert (found.pid, found.about) == (elsewhere.pid, "elsewhere")
    assert abs(datetime.now().astimezone() - found.since) < timedelta(minutes=1)
    words = rf"another nightly run is in progress here since {found.since:%Y-%m-%d %H:%M} \(pid {elsewhere.pid}\)"
    with pytest.raises(UsageError, match=words), hold(tmp_path):
        pass


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_holder_that_is_killed_holds_nothing_any_more(tmp_path, elsewhere, number):
    elsewhere.send_signal(number)
    elsewhere.wait()
    assert holder(tmp_path) is None
    with hold(tmp_path):
        found = holder(tmp_path)
        assert found is not None
        assert found.pid == os.getpid()


def test_nobody_holds_what_was_let_go_of(tmp_path):
    assert holder(tmp_path) is None
    with pytest.raises(ZeroDivisionError), hold(tmp_path):
        raise ZeroDivisionError
    assert holder(tmp_path) is None
    with hold(tmp_path):
        pass


def test_locks_of_different_names_do_not_meet(tmp_path):
    with hold(tmp_path), hold(tmp_path, name="nightly-serve"):
        assert holder(tmp_path, name="nightly-serve") is not None


def test_whoever_asks_all_the_time_keeps_nobody_from_taking_it(tmp_path):
    with hold(tmp_path):
        pass
    asked, done = [], threading.Event()

    def ask() -> None:
        while not done.is_set():
            asked.append(holder(tmp_path))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(50):
            with hold(tmp_path):
                pass
    finally:
        done.set()
        thread.join()
    assert asked


def test_a_lock_taken_this_moment_with_nothing_written_is_waited_for_only_briefly(tmp_path, elsewhere):
    [file] = tmp_path.iterdir()
    file.write_text("")
    begun = time.monotonic()
    assert holder(tmp_path) is None
    assert time.monotonic() - begun < 5
    with pytest.raises(UsageError, match="another nightly run is in progress here: wait"), hold(tmp_path):
        pass


def test_it_is_the_same_for_all_histories_of_a_user(monkeypatch, tmp_path):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    monkeypatch.setenv("TFCOMPARE_HISTORY", str(tmp_path / "one"))
    with hold():
        monkeypatch.setenv("TFCOMPARE_HISTORY", str(tmp_path / "another"))
        assert holder() is not None
        assert [path.suffix for path in user_data.folder().iterdir()] == [".lock"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*file.*TFCOMPARE_DATA"), hold(tmp_path / "file"):
        pass

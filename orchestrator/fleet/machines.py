"""Starts and ends a fleet on plain machines, over ssh: on each of them a separate Ray that listens to it alone.

Each machine runs `ray start` in a session that outlives the connection. Its process is known by its number and by the
time of its start, so `down` ends nothing else. The token keeps the other users of a machine out. It goes over ssh's
input, and not in arguments, which every user of a machine can read.
"""

import json
import re
import secrets
import shlex
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet.cluster import AT_ONCE, SLOT, token_file
from orchestrator.fleet.model import OF_NAME
from orchestrator.formats import FLEET
from orchestrator.model import STRICT
from orchestrator.parallel import run_parallel
from orchestrator.terminal.view import View

HERE = "localhost"
# For results on their way: each is small.
STORE_BYTES = 200_000_000
# To reach a machine, and for its node to be ready.
CONNECT_S, READY_S = 10, 60
# So ssh never asks for a password.
UNATTENDED = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")

# Where Ray believes that it cannot have other machines, its servers listen to their own machine alone.
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0"
START = """
set -eu
umask 077
data={data}
log="$data/$(uname -n).log"
mkdir -p "$data"
printf %s {token} >"$data/token"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$data/token" RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 {alone}
port=$({python} -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
{ray} --ray-client-server-port=$port >"$log" 2>&1 </dev/null &
pid=$!
left={ready}
until grep -q 'Ray runtime started' "$log"; do
    if ! kill -0 $pid 2>/dev/null || [ $left -eq 0 ]; then tail -n 2 "$log" >&2; exit 1; fi
    left=$((left - 1))
    sleep 1
done
if ! grep -q 'Local node IP.*127[.]0[.]0[.]1' "$log"; then
    kill $pid
    echo 'this Ray would listen to other machines; install a newer one' >&2
    exit 1
fi
echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat) $port
"""
# The last line of that: the number of a process, when it started, and its port.
ANSWER = re.compile(r"(?:^|\s)([1-9]\d{0,9}) (\d{1,19}) ([1-9]\d{0,4})\s*\Z", re.ASCII)
MOST_ANSWER = 80
ODD = "see what `ssh HOST sh -c true` prints there: a start-up file of its shell may print or end it"
DATA = '"${TFCOMPARE_DATA:-${XDG_DATA_HOME:-$HOME/.local/share}}/tfcompare/fleet"'
IS_OURS = '[ "$(cut -d " " -f 22 /proc/{pid}/stat 2>/dev/null)" = {started} ]'
# It ends its children, and itself a moment later.
END = f"""
if {IS_OURS}; then
    kill {{pid}}
    for second in 1 2 3 4 5 6 7 8 9 10; do
        if ! {IS_OURS}; then break; fi
        sleep 1
    done
    kill -9 -- -{{pid}} 2>/dev/null || true
fi
"""


@dataclass(frozen=True, kw_only=True)
class FleetMachine:
    """A machine of a fleet: a process on it, by number and time of its start, and the port that takes orders there."""

    __pydantic_config__ = STRICT

    host: str
    pid: int
    started: int
    port: int


@dataclass(frozen=True, kw_only=True)
class StartedFleet:
    """A fleet as it was started, and the command that reaches its machines."""

    __pydantic_config__ = STRICT

    ssh: tuple[str, ...]
    machines: tuple[FleetMachine, ...] = ()


STARTED = TypeAdapter(StartedFleet)


def state_file() -> Path:
    return user_data.folder() / "fleet" / "fleet.json"


def read_started() -> StartedFleet | None:
    try:
        return STARTED.validate_json(FLEET.unstamp(files.read_text(state_file()).encode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{state_file()} cannot be used: {str(error).splitlines()[0]}; end Ray by hand") from error


def start(
    hosts: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
    ssh: Sequence[str],
    prefix: Path,
    view: View,
) -> StartedFleet:
    """Start Ray on each host; one that cannot be reached costs only itself."""
    if read_started():
        raise UsageError("there is a fleet already: `tfcompare fleet status` shows it, `tfcompare fleet down` ends it")
    file = token_file()
    with files.writing(file, user_data.REMEDY):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.is_file():
            files.write_atomically(file, secrets.token_hex(32).encode(), 0o600)
        token = file.read_text().strip()
    fleet = StartedFleet(ssh=tuple(ssh))
    keeping = threading.Lock()

    def start_one(host: str) -> None:
        nonlocal fleet
        listed = {OF_NAME: host.rpartition("@")[2] if host != HERE else socket.gethostname(), **labels.get(host, {})}
        try:
            machine = _start(host, listed, token, ssh, prefix)
        except EngineUnavailable as error:
            view.say(f"warning: {error}")
            return
        with keeping:
            fleet = replace(fleet, machines=(*fleet.machines, machine))
            keep_started(fleet)
        view.say(f"{host}: ready ({_join(listed)})")

    run_parallel(start_one, hosts, AT_ONCE)
    if not fleet.machines:
        raise EngineUnavailable("no machine could be started; see above")
    return fleet


def end(view: View) -> None:
    """End the processes of the fleet that was started from here."""
    fleet = read_started()
    if fleet is None:
        raise UsageError("there is no fleet that `tfcompare fleet up` started from here")

    def end_one(machine: FleetMachine) -> bool:
        try:
            _run(machine.host, END.format(pid=machine.pid, started=machine.started), fleet.ssh)
        except EngineUnavailable as error:
            view.say(f"warning: {error}")
            return False
        view.say(f"{machine.host}: ended")
        return True

    has_ended = run_parallel(end_one, fleet.machines, AT_ONCE)
    if left := [machine for machine, ended in zip(fleet.machines, has_ended, strict=True) if not ended]:
        keep_started(replace(fleet, machines=tuple(left)))
        names = ", ".join(machine.host for machine in left)
        raise EngineUnavailable(f"not ended: {names}", "`tfcompare fleet down` tries them again")
    state_file().unlink(missing_ok=True)


def keep_started(fleet: StartedFleet) -> None:
    with files.writing(state_file(), user_data.REMEDY):
        files.write_atomically(state_file(), FLEET.stamp(STARTED.dump_json(fleet, indent=1)) + b"\n", 0o600)


def _start(host: str, labels: Mapping[str, str], token: str, ssh: Sequence[str], prefix: Path) -> FleetMachine:
    binaries = prefix / "bin"
    ray = [
        "nohup", "setsid", str(binaries / "ray"), "start", "--block", "--head", "--port=0", "--num-cpus=1",
        "--num-gpus=0", "--include-dashboard=false", "--include-log-monitor=false", "--dashboard-agent-listen-port=0",
        "--disable-usage-stats",
        f"--object-store-memory={STORE_BYTES}", f"--resources={json.dumps({SLOT: 1})}", f"--labels={_join(labels)}",
    ]  # fmt: skip
    script = START.format(
        data=DATA,
        token=shlex.quote(token),
        alone=ALONE,
        python=shlex.quote(str(binaries / "python")),
        ray=shlex.join(ray),
        ready=READY_S,
    )
    answer = _run(host, script, ssh)
    numbers = ANSWER.search(answer)
    if numbers is None:
        last = (answer.strip().splitlines() or ["nothing"])[-1]
        raise EngineUnavailable(f"{host}: it did not answer with the numbers of a process: {last[:MOST_ANSWER]!r}", ODD)
    pid, started, port = map(int, numbers.groups())
    return FleetMachine(host=host, pid=pid, started=started, port=port)


def _join(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _run(host: str, script: str, ssh: Sequence[str]) -> str:
    """Run a script on a machine, which it gets as its input, and return what it prints."""
    words = ["sh", "-s"]
    if host != HERE:
        words = [*ssh, *UNATTENDED, "--", host, *words]
    try:
        done = subprocess.run(
            words,
            input=script,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=READY_S + 3 * CONNECT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineUnavailable(f"{host}: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        advice = "see whether `ssh` reaches it without a password, and whether tfcompare[ray] is installed there"
        raise EngineUnavailable(f"{host}: {said[-1]}", advice)
    return done.stdout

"""Starts and ends a fleet on plain machines, over ssh: a head on this one, and a node on each that measures.

Each machine runs `ray start` in a session that outlives the connection. Its process is known by its number and by the
time of its start, so `down` ends nothing else. The token goes over ssh's input, and not in arguments, which every user
of a machine can read.
"""

import json
import secrets
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet.cluster import SLOT, token_file
from orchestrator.fleet.model import OF_NAME
from orchestrator.model import STRICT

HERE = "localhost"
PORT, CLIENT_PORT = 6379, 10001
# For results on their way: each is small.
STORE_BYTES = 200_000_000
# To reach a machine, and for its node to be ready.
CONNECT_S, READY_S = 10, 60

START = """
set -eu
umask 077
data={data}
mkdir -p "$data"
printf %s {token} >"$data/token"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$data/token" RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0
{ray} >"$data/{log}" 2>&1 </dev/null &
pid=$!
left={ready}
until grep -q 'Ray runtime started' "$data/{log}"; do
    if ! kill -0 $pid 2>/dev/null || [ $left -eq 0 ]; then tail -n 2 "$data/{log}" >&2; exit 1; fi
    left=$((left - 1))
    sleep 1
done
echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat)
"""
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
    """A machine of a fleet that `tfcompare fleet up` started: a process on it, by number and time of its start."""

    __pydantic_config__ = STRICT

    host: str
    pid: int
    started: int


@dataclass(frozen=True, kw_only=True)
class StartedFleet:
    """A fleet as it was started: its head first."""

    __pydantic_config__ = STRICT

    address: str
    ssh: tuple[str, ...]
    machines: tuple[FleetMachine, ...]

    @property
    def on(self) -> str:
        return f"ray://{self.address}:{CLIENT_PORT}"


STARTED = TypeAdapter(StartedFleet)


def state_file() -> Path:
    return user_data.directory() / "fleet" / "fleet.json"


def read_started() -> StartedFleet | None:
    try:
        return STARTED.validate_json(files.read_text(state_file()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{state_file()} cannot be used: {str(error).splitlines()[0]}; end Ray by hand") from error


def start(
    hosts: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
    address: str,
    ssh: Sequence[str],
    prefix: Path,
    say: Callable[[str], None],
) -> StartedFleet:
    """Start a head here and a node on each host; a host that cannot be reached costs only itself."""
    if read_started():
        raise UsageError("there is a fleet already: `tfcompare fleet status` shows it, `tfcompare fleet down` ends it")
    token = _make_token()
    head = [
        "--head", f"--port={PORT}", f"--ray-client-server-port={CLIENT_PORT}", "--num-cpus=0",
        "--include-dashboard=false", f"--node-ip-address={address}",
    ]  # fmt: skip
    machines = [_start(HERE, head, "head.log", token, ssh, Path(sys.prefix))]
    fleet = StartedFleet(address=address, ssh=tuple(ssh), machines=tuple(machines))
    _keep(fleet)
    say(f"head: {address}, port {PORT}")
    for host in hosts:
        name = host.rpartition("@")[2] if host != HERE else socket.gethostname()
        listed = ",".join(f"{key}={value}" for key, value in {OF_NAME: name, **labels.get(host, {})}.items())
        node = [
            f"--address={address}:{PORT}", "--num-cpus=1", f"--resources={json.dumps({SLOT: 1})}", f"--labels={listed}",
            "--dashboard-agent-listen-port=0",
        ]  # fmt: skip
        try:
            machines.append(_start(host, node, "node.log", token, ssh, prefix))
        except EngineUnavailable as error:
            say(f"warning: {error}")
            continue
        fleet = StartedFleet(address=address, ssh=tuple(ssh), machines=tuple(machines))
        _keep(fleet)
        say(f"{host}: ready ({listed})")
    return fleet


def end(say: Callable[[str], None]) -> None:
    """End the processes of the fleet that was started from here, the head last."""
    fleet = read_started()
    if fleet is None:
        raise UsageError("there is no fleet that `tfcompare fleet up` started from here")
    left = []
    for machine in reversed(fleet.machines):
        try:
            _run(machine.host, END.format(pid=machine.pid, started=machine.started), fleet.ssh)
            say(f"{machine.host}: ended")
        except EngineUnavailable as error:
            left.append(machine)
            say(f"warning: {error}")
    if left:
        _keep(StartedFleet(address=fleet.address, ssh=fleet.ssh, machines=tuple(reversed(left))))
        names = ", ".join(machine.host for machine in left)
        raise EngineUnavailable(f"not ended: {names}", "`tfcompare fleet down` tries them again")
    state_file().unlink(missing_ok=True)


def find_gone(fleet: StartedFleet) -> list[str]:
    """Return the hosts whose process is gone, or that cannot be reached."""
    gone = []
    for machine in fleet.machines:
        try:
            _run(machine.host, IS_OURS.format(pid=machine.pid, started=machine.started), fleet.ssh)
        except EngineUnavailable:
            gone.append(machine.host)
    return gone


def _make_token() -> str:
    file = token_file()
    with files.writing(file, user_data.REMEDY):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.is_file():
            files.write_atomically(file, secrets.token_hex(32).encode(), 0o600)
        return file.read_text().strip()


def _keep(fleet: StartedFleet) -> None:
    with files.writing(state_file(), user_data.REMEDY):
        files.write_atomically(state_file(), STARTED.dump_json(fleet, indent=1) + b"\n", 0o600)


def _start(host: str, flags: Iterable[str], log: str, token: str, ssh: Sequence[str], prefix: Path) -> FleetMachine:
    ray = [
        "nohup", "setsid", str(prefix / "bin" / "ray"), "start", "--block", "--num-gpus=0", "--disable-usage-stats",
        f"--object-store-memory={STORE_BYTES}", *flags,
    ]  # fmt: skip
    script = START.format(data=DATA, token=shlex.quote(token), ray=shlex.join(ray), log=log, ready=READY_S)
    pid, started = _run(host, script, ssh).split()[-2:]
    return FleetMachine(host=host, pid=int(pid), started=int(started))


def _run(host: str, script: str, ssh: Sequence[str]) -> str:
    """Run a script on a machine, which it gets as its input, and return what it prints."""
    words = ["sh", "-s"]
    if host != HERE:
        words = [*ssh, "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "--", host, *words]
    try:
        done = subprocess.run(
            words, input=script, capture_output=True, text=True, timeout=READY_S + 3 * CONNECT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineUnavailable(f"{host}: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        advice = "see whether `ssh` reaches it without a password, and whether tfcompare[ray] is installed there"
        raise EngineUnavailable(f"{host}: {said[-1]}", advice)
    return done.stdout

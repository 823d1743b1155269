"""Every known way out of a container, tried from inside a worker's, as its own user and as root."""

import json
from collections.abc import Iterator

import docker
import pytest

from orchestrator.bundled import WORKLOADS
from orchestrator.engines.docker.container import ContainerChannel, Spec, create
from orchestrator.engines.docker.engine import DockerEnvironment
from tests.engines.docker.conftest import OWN

# Run inside, with the image's own Python; each way answers "yes" or why not.
TRY = r"""
import ctypes, errno, json, os, socket

libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNTS, NEW_PIDS = 0x10000000, 0x00020000, 0x20000000


def called(name, *arguments):
    function = getattr(libc, name, None)
    if function is None:
        return "there is no such call"
    ctypes.set_errno(0)
    return "yes" if function(*arguments) >= 0 else os.strerror(ctypes.get_errno())


def tried(action):
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    return "yes"


def forked(action):
    # A way that works would change this process; only its child may be changed.
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, action().encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        return answer.read() or "ended by a signal"


def writes(path, text=b"0"):
    def write():
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, text)
        finally:
            os.close(handle)
    return lambda: tried(write)


def reads(path):
    def read():
        with open(path, "rb") as file:
            if not file.read(1):
                raise OSError(errno.ENODATA, "it is empty")
    return lambda: tried(read)


def opens_by_handle():
    # The handle of the file system's root, as the way that was named for it does.
    handle = (ctypes.c_char * 16).from_buffer_copy((8).to_bytes(4, "little") + (1).to_bytes(4, "little") +
                                                   (2).to_bytes(8, "little"))
    where = os.open("/tfcompare/results", os.O_RDONLY)
    return called("open_by_handle_at", where, handle, os.O_RDONLY)


ways = {
    "mount a file system": lambda: called("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "mount the host's proc": lambda: called("mount", b"proc", b"/tmp", b"proc", 0, None),
    "make a mount writable": lambda: called("mount", None, b"/tfcompare/workloads", None, 32 | 4096, None),
    "unmount": lambda: called("umount2", b"/tfcompare/workloads", 2),
    "a user namespace": lambda: called("unshare", NEW_USER),
    "a mount namespace": lambda: called("unshare", NEW_MOUNTS),
    "a process namespace": lambda: called("unshare", NEW_PIDS),
    "another root": lambda: called("chroot", b"/tmp"),
    "a device node": lambda: tried(lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0))),
    "a kernel module": lambda: called("init_module", b"", 0, b""),
    "another host name": lambda: called("sethostname", b"mine", 4),
    "another time": lambda: called("settimeofday", (ctypes.c_long * 2)(0, 0), None),
    "a restart": lambda: called("reboot", 0x01234567),
    "swap": lambda: called("swapon", b"/tmp/swap", 0),
    "files by handle": opens_by_handle,
    "a raw socket": lambda: tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "a packet socket": lambda: tried(lambda: socket.socket(17, socket.SOCK_RAW)),
    "the engine's socket": lambda: tried(lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock")),
    "a network": lambda: tried(lambda: socket.create_connection(("192.0.2.1", 80), 3)),
    "the host's core dumps": writes("/proc/sys/kernel/core_pattern", b"|/tmp/x"),
    "the host's kernel": writes("/proc/sys/kernel/panic"),
    "the host's keys": writes("/proc/sysrq-trigger", b"h"),
    "the host's address layout": writes("/proc/sys/kernel/randomize_va_space"),
    "the kernel's memory": reads("/proc/kcore"),
    "the kernel's log": reads("/dev/kmsg"),
    "the machine's memory": reads("/dev/mem"),
    "the disk": reads("/dev/vda"),
    "the other disk": reads("/dev/sda"),
    "a cgroup's agent": writes("/sys/fs/cgroup/memory/release_agent", b"/tmp/x"),
    "a cgroup": lambda: tried(lambda: os.mkdir("/sys/fs/cgroup/mine")),
    "the memory limit": writes("/sys/fs/cgroup/memory/memory.limit_in_bytes", b"-1"),
    "the newer memory limit": writes("/sys/fs/cgroup/memory.max", b"max"),
    "its own program": writes("/proc/self/exe"),
    "the worker's program": writes("/tfcompare/workloads/worker.py"),
    "the image": lambda: tried(lambda: open("/etc/passwd", "a")),
    "another user": lambda: tried(lambda: os.setuid(0 if os.getuid() else 12345)),
    "another user's file": lambda: tried(lambda: os.chown("/tfcompare/results", 12345, 12345)),
    "a higher priority": lambda: tried(lambda: os.nice(-5)),
}
print(json.dumps({name: forked(way) for name, way in ways.items()}))
"""


@pytest.fixture(scope="module")
def worker(environments: dict[str, DockerEnvironment], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The container of a worker that waits for orders."""
    environment = environments["1.14.0"]
    results = tmp_path_factory.mktemp("results")
    wanted = Spec(
        image=environment.facts.identity, version="1.14.0", run="escapes", workloads=WORKLOADS, own_workloads=OWN,
        results=results, gpu=None,
    )  # fmt: skip
    made = create(environment.client, wanted)
    channel = ContainerChannel(environment.client, made, "1.14.0", results.with_name("log"))
    yield made
    channel.close()


@pytest.mark.parametrize("user", ["", "0:0"], ids=["its own user", "root"])
def test_no_way_leads_out(client: docker.DockerClient, worker: str, user: str) -> None:
    look = client.api.exec_create(worker, ["python3", "-c", TRY], user=user)["Id"]
    output = client.api.exec_start(look)
    assert client.api.exec_inspect(look)["ExitCode"] == 0, output
    answers: dict[str, str] = json.loads(output)
    assert len(answers) > 30
    assert {way: answer for way, answer in answers.items() if answer == "yes"} == {}

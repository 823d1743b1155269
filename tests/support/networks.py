"""A second network on this machine, with its loopback and its ports: what runs there is on another machine.

It takes iproute2 and root.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Each process that tests at the same time has two addresses.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
NEAR, FAR = f"10.231.{WORKER}.1", f"10.231.{WORKER}.2"


def find_tool(name: str) -> str:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""


@contextmanager
def second_network() -> Iterator[list[str]]:
    """Yield the words that call a command there, at the address FAR; this machine is at NEAR."""
    ip, space = find_tool("ip"), f"far{os.getpid()}"
    if not ip or os.getuid():
        pytest.skip("no second network: it takes iproute2 and root")
    for left in Path("/run/netns").glob("far*"):
        # Of tests that were killed, and had the same addresses.
        if not Path("/proc", left.name.removeprefix("far")).exists():
            subprocess.run([ip, "netns", "delete", left.name], check=False)
    near = f"near{os.getpid()}"
    inside = ["nsenter", f"--net=/run/netns/{space}"]
    try:
        for words in (
            [ip, "netns", "add", space],
            [ip, "link", "add", near, "type", "veth", "peer", "name", space, "netns", space],
            [ip, "address", "add", f"{NEAR}/30", "dev", near],
            [ip, "link", "set", near, "up"],
            [*inside, ip, "address", "add", f"{FAR}/30", "dev", space],
            [*inside, ip, "link", "set", space, "up"],
            [*inside, ip, "link", "set", "lo", "up"],
        ):
            subprocess.run(words, check=True)
        yield inside
    finally:
        # Its end of the cable goes with it.
        subprocess.run([ip, "netns", "delete", space], check=False)

"""Why `fleet up` makes no Ray cluster of its machines, and why tfcompare chooses the host of a unit also in a cluster.

In one cluster, each machine can give orders to all others. Neither Ray's token nor its TLS changes that, since all
machines have the same ones. And a task that suits no node waits, without a word. Once one of these tests fails, Ray has
changed, and docs/fleet.md needs a new look.
"""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.fleets import Nodes
from tests.support.networks import find_tool
from tests.support.processes import PATIENCE_S

pytest.importorskip("ray")

# A task that the driver sent to one node gives an order to another.
ORDERS = """
import os, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

ray.init(address=os.environ["RAY_ADDRESS"], logging_level="ERROR", log_to_driver=False)
nodes = {node["Labels"]["host"]: node["NodeID"] for node in ray.nodes() if "host" in node["Labels"]}

@ray.remote(num_cpus=0, max_retries=0)
def obey():
    return os.environ["TFCOMPARE_HOST"]

@ray.remote(num_cpus=0, max_retries=0)
def order(other):
    return os.environ["TFCOMPARE_HOST"], ray.get(obey.options(scheduling_strategy=On(other, soft=False)).remote())

print(*ray.get(order.options(scheduling_strategy=On(nodes["b"], soft=False)).remote(nodes["a"])))
"""


WAITS = """
import os, ray

ray.init(address=os.environ["RAY_ADDRESS"], logging_level="ERROR", log_to_driver=False)

@ray.remote(num_cpus=0, max_retries=0)
def obey():
    return os.environ["TFCOMPARE_HOST"]

suits, no_node = (obey.options(label_selector={"gpu": gpu}).remote() for gpu in ("t4", "v100"))
print(ray.get(suits))
print(len(ray.wait([no_node], timeout=15)[0]))
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate of this cluster, for each of its machines the same."""
    openssl = find_tool("openssl")
    if not openssl:
        pytest.skip("no certificates: it takes openssl")
    folder = tmp_path_factory.mktemp("certificates")
    names = {name: str(folder / name) for name in ("ca.key", "ca.crt", "key", "csr", "crt", "names")}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: it says which address of this machine Ray takes.
        with suppress(OSError):
            probe.connect(("192.0.2.1", 9))
        own = probe.getsockname()[0]
    Path(names["names"]).write_text(f"subjectAltName=IP:127.0.0.1,IP:{own},DNS:localhost\n")
    new = ["-newkey", "rsa:2048", "-nodes"]
    for words in (
        ["req", "-x509", *new, "-subj", "/CN=fleet", "-days", "2", "-keyout", names["ca.key"], "-out", names["ca.crt"]],
        ["req", *new, "-subj", "/CN=machine", "-keyout", names["key"], "-out", names["csr"]],
        [
            "x509", "-req", "-in", names["csr"], "-CA", names["ca.crt"], "-CAkey", names["ca.key"], "-CAcreateserial",
            "-days", "2", "-extfile", names["names"], "-out", names["crt"],
        ],
    ):  # fmt: skip
        subprocess.run([openssl, *words], check=True, capture_output=True)
    return {
        "RAY_USE_TLS": "1", "RAY_TLS_SERVER_CERT": names["crt"], "RAY_TLS_SERVER_KEY": names["key"],
        "RAY_TLS_CA_CERT": names["ca.crt"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def nodes(certificates: dict[str, str]) -> Iterator[Nodes]:
    nodes = Nodes(certificates)
    try:
        nodes.add("a")
        nodes.add("b", gpu="t4")
        yield nodes
    finally:
        nodes.close()


@pytest.mark.long
def test_a_machine_of_one_cluster_gives_orders_to_another_in_spite_of_token_and_tls(nodes: Nodes):
    context = ssl.create_default_context(cafile=nodes.variables["RAY_TLS_CA_CERT"])
    context.load_cert_chain(nodes.variables["RAY_TLS_SERVER_CERT"], nodes.variables["RAY_TLS_SERVER_KEY"])
    with (
        socket.create_connection(("127.0.0.1", nodes.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
    ):
        assert encrypted.version()
    assert drive(nodes, ORDERS) == ["b", "a"]


@pytest.mark.long
def test_a_task_that_suits_no_node_waits_without_a_word(nodes: Nodes):
    assert drive(nodes, WAITS) == ["b", "0"]


def drive(nodes: Nodes, script: str) -> list[str]:
    """Return what a command says that uses the cluster."""
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **nodes.env}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()

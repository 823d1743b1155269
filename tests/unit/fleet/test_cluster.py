"""What users read when a cluster does not take them, from what Ray raised and printed at such times."""

import sys
from unittest.mock import MagicMock

import pytest

from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet import cluster, host
from orchestrator.fleet.model import TaskLost
from orchestrator.terminal.view import View

MISMATCH = (
    "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\nThis process on node "
    "192.0.2.2 was started with:\n    Ray: 2.60.0\n    Python: 3.12.1\n"
)
REFUSED = (
    "gcs_client.cc:210: Failed to get cluster ID from GCS server: Unauthenticated: RPC error: InvalidAuthToken: "
    "Authentication token is missing or incorrect"
)


def explain(on: str, error: Exception, said: tuple[str, ...] = ()) -> str:
    return str(EngineUnavailable(*cluster._explain(f"--on {on}", error, said)))


def test_other_versions_are_named_with_both_numbers():
    told = explain("auto", RuntimeError(MISMATCH))
    assert told.startswith("--on auto: Version mismatch: The cluster was started with: Ray: 2.60.0 Python: 3.11.7")
    assert told.endswith("install the same Python and the same Ray on all machines")


def test_a_token_that_is_refused_is_recognised_by_what_ray_prints():
    told = explain("auto", ConnectionError("Failed to connect to Ray cluster at 192.0.2.2:6379"), (REFUSED,))
    assert told.startswith("--on auto: the cluster refuses this token; ")


def test_where_nothing_answers_the_reason_and_a_way_to_start_one_are_named():
    told = explain("ray://head:10001", ConnectionRefusedError(111, "Connection refused"))
    assert told.startswith(
        "--on ray://head:10001: no cluster answers there ([Errno 111] Connection refused); docs/fleet.md says how to"
    )


@pytest.mark.parametrize("on", ["ray://", "ray://head", "ray:/head:1", "ray://head:x", "https://head:1", "cluster"])
def test_what_names_no_fleet_is_a_mistake_of_the_user(on: str):
    with pytest.raises(UsageError, match=r"it takes local, auto for the machines of"):
        cluster.check_address(on)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(UsageError, match=r"takes Ray, which is not installed: pip install 'tfcompare\[ray\]'"),
        cluster.connect_cluster("auto", View()),
    ):
        pass


def test_a_cluster_that_goes_while_we_speak_to_it_is_gone():
    pytest.importorskip("ray")
    grpc = pytest.importorskip("grpc")
    ray = MagicMock()
    for error in (ConnectionError("Client is shutting down."), grpc.RpcError("NOT_FOUND")):
        ray.nodes.side_effect = error
        with pytest.raises(EngineUnavailable, match=f"the cluster no longer answers: {error}"):
            cluster.Cluster(ray, host.measure_unit).nodes()


@pytest.mark.parametrize("answer", [("text", {}), (b"{}", {}), (b"{}", {"a": "text"}), (b"{}",), object(), None])
def test_what_a_host_sends_instead_of_json_and_files_is_no_answer(answer: object):
    pytest.importorskip("ray")
    ray = MagicMock()
    ray.exceptions.RayTaskError = ray.exceptions.RayError = RuntimeError
    ray.get.return_value = answer
    with pytest.raises(TaskLost, match="its answer is not one of tfcompare's"):
        cluster.Cluster(ray, host.measure_unit).answer("begun")


def test_messages_of_another_form_are_dropped():
    pytest.importorskip("ray")
    ray = MagicMock()
    ray.exceptions.RayError = RuntimeError
    ray.wait.side_effect = lambda refs, timeout: (refs, [])
    fleet = cluster.Cluster(ray, host.measure_unit)
    ray.get.return_value = [(b"{}", {"journal.jsonl": b""})]
    assert list(fleet.heard()) == [(b"{}", {"journal.jsonl": b""})]
    ray.get.return_value = [("text", {})]
    assert list(fleet.heard()) == []


def test_a_server_that_was_too_busy_for_us_is_asked_again():
    ray = MagicMock()
    ray.init.side_effect = [ConnectionAbortedError("Initialization failure from server:")] * 2 + ["connected"]
    assert cluster._init(ray, "ray://head:10001") == "connected"
    ray.init.side_effect = ConnectionAbortedError("Initialization failure from server:")
    with pytest.raises(ConnectionAbortedError):
        cluster._init(ray, "ray://head:10001")

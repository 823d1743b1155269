"""Which machines belong to a fleet, and which of them may have a unit."""

from dataclasses import replace

import pytest

from orchestrator import catalog
from orchestrator.errors import EngineUnavailable
from orchestrator.fleet.model import FleetNode, HostReport
from orchestrator.fleet.place import choose_fleet_engine, find_duplicate, find_host_obstacle, find_misfit, find_mismatch
from orchestrator.machine.gpu import Gpu

REPORT = HostReport(tool="1.0", contract="c", facts={"id": "x"}, engines={"docker": "", "venv": ""}, free_mb=9999)
NODE = FleetNode(id="1", name="gpu1", labels={"gpu": "a100", "rack": "3"})
SILENT = {"docker": "the Docker engine does not answer", "venv": ""}


def card(name: str, capability: str) -> Gpu:
    return Gpu(0, f"GPU-{name}", name, capability, "580.65.06", 80_000, 300, True, False)


def test_labels_and_the_name_of_a_host_select_it():
    assert find_mismatch(NODE, ()) == ""
    assert find_mismatch(NODE, (("gpu", "a100"), ("host", "gpu1"))) == ""
    assert find_mismatch(NODE, (("gpu", "t4"), ("host", "gpu2"), ("rack", "3"))) == "gpu=t4, host=gpu2"


def test_another_tfcompare_is_refused_with_both_numbers():
    assert find_host_obstacle(REPORT, "1.0", "c") == ""
    told = find_host_obstacle(replace(REPORT, tool="0.9"), "1.0", "c")
    assert told == "it has tfcompare 0.9 (contract c), this is 1.0 (c): install this one there"
    assert "contract d" in find_host_obstacle(replace(REPORT, contract="d"), "1.0", "c")


def test_a_full_disk_is_found_before_anything_is_measured():
    assert find_host_obstacle(replace(REPORT, free_mb=20), "1.0", "c").startswith("its disk has 20 MB left")


def test_two_hosts_with_one_id_are_one_machine_until_they_say_otherwise():
    assert find_duplicate(REPORT, {}) == ""
    assert find_duplicate(REPORT, {"gpu2": replace(REPORT, facts={"id": "y"})}) == ""
    told = find_duplicate(REPORT, {"gpu2": REPORT})
    assert told.startswith("it has the same id as gpu2 (x).")
    assert "/etc/machine-id" in told
    assert find_duplicate(replace(REPORT, simulated="a"), {"gpu2": replace(REPORT, simulated="b")}) == ""


def test_the_engine_is_the_one_that_most_hosts_have():
    without = replace(REPORT, engines=SILENT)
    only = replace(REPORT, engines={"docker": "", "venv": "it has no Python"})
    assert choose_fleet_engine("auto", [without, only]) == "docker"
    assert choose_fleet_engine("auto", [without, REPORT]) == "venv"
    assert choose_fleet_engine("auto", [*[without] * 9, only]) == "venv"
    assert choose_fleet_engine("auto", [without, without]) == "venv"
    assert choose_fleet_engine("venv", [REPORT]) == "venv"


def test_an_engine_that_no_host_has_is_refused_with_the_reason():
    with pytest.raises(EngineUnavailable, match=r"--engine docker: the Docker engine does not answer$"):
        choose_fleet_engine("docker", [replace(REPORT, engines=SILENT)])


def test_a_version_is_never_sent_to_a_card_on_which_it_cannot_run():
    old, new = catalog.resolve_versions(("1.14", "2.13"))
    a100 = replace(REPORT, gpus=(card("A100", "8.0"),))
    assert find_misfit((old, new), a100, gpu=False, force=False) == ""
    assert find_misfit((new,), a100, gpu=True, force=False) == ""
    assert "1.14.0" in find_misfit((old, new), a100, gpu=True, force=False)
    assert find_misfit((old, new), a100, gpu=True, force=True) == ""
    assert find_misfit((old, new), replace(REPORT, gpus=(card("T4", "7.5"),)), gpu=True, force=False) == ""
    assert find_misfit((new,), REPORT, gpu=True, force=False) == "it has no GPU"

"""Where CUDA's libraries are, for each kind of GPU flavour of the table, and where a cluster keeps the driver's."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lockfile
from orchestrator.engines.cuda_libraries import (
    COMPILER_FOLDER,
    FOLDERS,
    add_driver,
    code_variables,
    find_variables,
    keep_xla_code,
)
from orchestrator.model import EnvironmentFacts
from tests.support.builders import environment_facts


def facts_of(number: str, device: str = "gpu") -> EnvironmentFacts:
    [version] = catalog.resolve_versions([number], fewest=1)
    flavour = next(each for each in version.flavours if each.name == device)
    return environment_facts(
        version=version.number,
        kind="venv",
        identity="",
        lock="",
        python=f"{flavour.python.number}.18",
        packages=lockfile.list_packages(flavour.pip_lock, flavour.lock),
    )


@pytest.mark.parametrize("number", ["2.5", "2.11", "2.13"])
def test_a_wheel_that_looks_for_no_packages_is_told_where_they_are(number: str):
    found = find_variables(facts_of(number), "/made", {})
    root = "/made/lib/python3.8/site-packages/nvidia"
    assert found["LD_LIBRARY_PATH"].split(":") == [f"{root}/{folder}/lib" for folder in FOLDERS]
    assert found["XLA_FLAGS"] == f"--xla_gpu_cuda_data_dir={root}/{COMPILER_FOLDER}"


def test_the_variables_of_a_target_are_kept_behind_them():
    own = {"LD_LIBRARY_PATH": "/mine", "XLA_FLAGS": "--xla_dump_to=/x", "TF_X": "1"}
    found = find_variables(facts_of("2.12"), "/made", own)
    assert found["LD_LIBRARY_PATH"].endswith("/nvjitlink/lib:/mine")
    assert found["XLA_FLAGS"].endswith(f"{COMPILER_FOLDER} --xla_dump_to=/x")
    assert "TF_X" not in found


@pytest.mark.parametrize("number", ["1.14", "2.0", "2.4"])
def test_a_version_whose_image_has_the_libraries_is_told_where_the_compiler_is(number: str):
    facts = facts_of(number)
    root = f"/made/lib/python{facts.python.removesuffix('.18')}/site-packages/nvidia"
    assert find_variables(facts, "/made", {"LD_LIBRARY_PATH": "/mine"}) == {
        "XLA_FLAGS": f"--xla_gpu_cuda_data_dir={root}/{COMPILER_FOLDER}"
    }


@pytest.mark.parametrize("number", ["2.14", "2.16", "2.21"])
def test_a_wheel_that_should_look_for_packages_is_told_where_they_are_but_for_the_compiler(number: str):
    """2.16.1 and 2.21.0 look for most of them, and use no GPU if one is missing."""
    found = find_variables(facts_of(number), "/made", {})
    root = "/made/lib/python3.11/site-packages/nvidia"
    assert found == {"LD_LIBRARY_PATH": ":".join(f"{root}/{folder}/lib" for folder in FOLDERS)}


def test_a_nightly_is_told_as_a_release_is():
    facts = facts_of("2.21")
    packages = {"tf-nightly" if name == "tensorflow" else name: number for name, number in facts.packages.items()}
    nightly = replace(facts, packages={**packages, "tf-nightly": "2.22.0.dev20261120"})
    assert "tensorflow" not in nightly.packages
    assert find_variables(nightly, "/made", {}) == find_variables(facts, "/made", {}) != {}


@pytest.mark.parametrize("number", ["1.14", "2.13", "2.20"])
def test_a_version_without_cuda_is_told_nothing(number: str):
    assert find_variables(facts_of(number, "cpu"), "/made", {"LD_LIBRARY_PATH": "/mine"}) == {}


@pytest.mark.parametrize("number", ["2.5", "2.13", "2.16"])
def test_every_package_of_the_lock_has_its_folder_named(number: str):
    packages = {name for name in facts_of(number).packages if name.startswith("nvidia-")}
    named = {f"nvidia-{folder.replace('_', '-')}" for folder in (*FOLDERS, COMPILER_FOLDER)}
    assert {name.rpartition("-cu")[0] for name in packages} <= named


def test_only_a_folder_with_the_driver_is_taken_from_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder, library in (("driver", "libcuda.so.1"), ("cuda", "libcudnn.so.8")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / library).touch()
    driver, other = tmp_path / "driver", tmp_path / "cuda"
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{other}::{driver}:/nowhere")
    assert add_driver({"TF_X": "1"}) == {"TF_X": "1", "LD_LIBRARY_PATH": str(driver)}
    assert add_driver({"LD_LIBRARY_PATH": "/packages"})["LD_LIBRARY_PATH"] == f"/packages:{driver}"
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert add_driver({"TF_X": "1"}) == {"TF_X": "1"}


def test_compiled_code_has_a_folder_and_a_bound():
    assert code_variables("/there") == {"CUDA_CACHE_PATH": "/there", "CUDA_CACHE_MAXSIZE": "4294967296"}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(("number", "can"), [("1.15", False), ("2.13", False), ("2.16", True), ("2.21", True)])
def test_xla_keeps_its_code_where_the_release_can(number: str, can: bool, device: str):
    found = keep_xla_code(facts_of(number, device), "/there", {})
    assert found == ({"TF_XLA_FLAGS": '--tf_xla_persistent_cache_directory="/there"'} if can else {})


def test_a_file_of_flags_gets_no_more_of_them():
    assert keep_xla_code(facts_of("2.20", "cpu"), "/there", {"TF_XLA_FLAGS": "/my/flags"}) == {}


def test_a_target_keeps_its_own_flags_of_xla_and_a_folder_may_have_any_name():
    found = keep_xla_code(facts_of("2.20", "cpu"), '/a "b" c\\d', {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"})
    assert found == {"TF_XLA_FLAGS": r'''--tf_xla_auto_jit=2 --tf_xla_persistent_cache_directory="/a \"b\" c\\d"'''}

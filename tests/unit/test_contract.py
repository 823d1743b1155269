"""The host reads the contract from its own files, whatever else has their name."""

import subprocess
import sys
from pathlib import Path

from orchestrator import contract

PROGRAM = """
import sys
from orchestrator import contract
from orchestrator.catalog.workloads import all_workloads
all_workloads()
print(contract.FINGERPRINT, contract.encode({}).strip(), "workloads" in sys.modules)
"""


def test_a_package_of_the_user_is_never_taken_for_the_workloads(tmp_path: Path):
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "workloads" / "contract.py").write_text("raise SystemExit('imported')\n")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{contract.FINGERPRINT} {{}} False\n", "")


def test_its_errors_belong_to_the_host():
    assert contract.ContractError.__module__ == "orchestrator.contract"
    assert contract.Field.__module__ == "orchestrator.contract"

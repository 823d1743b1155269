"""The host's only access to the contract with its workers, which is defined in workloads/contract.py.

The file is run by path: an import of `workloads` would take any package of that name that comes first on sys.path.
"""

from typing import TYPE_CHECKING

from orchestrator.bundled import WORKLOADS

if TYPE_CHECKING:
    from workloads.contract import *  # noqa: F403
else:
    _SOURCE = WORKLOADS / "contract.py"
    exec(compile(_SOURCE.read_bytes(), _SOURCE, "exec"))  # noqa: S102

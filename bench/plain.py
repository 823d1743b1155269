"""What plans, manifests and environments of benchmarks do not have."""

from typing import Any

PLAN: dict[str, Any] = {
    "isolation": "fork", "cpus": None, "memory_mb": None, "runtime": "", "claims": (), "gpus": (), "exclusive": False,
    "lock_mhz": None, "large": (), "definitions": (), "program": (), "requirements": (), "metrics": (), "decides": (),
    "outputs": False, "margins": {}, "judge": "wall", "most_rounds": 0,
}  # fmt: skip
MANIFEST: dict[str, Any] = {"notes": (), "variables": {}, "hosts": ()}
ENVIRONMENT: dict[str, Any] = {"details": {}, "packages": {}, "variables": {}, "size_bytes": None}

"""docs/compat.md: the functions of workloads/compat.py that a workload may call."""

import ast
from pathlib import Path

from tools.docs import WRITTEN

COMPAT = Path(__file__).resolve().parents[2] / "workloads" / "compat.py"
# tfcompare's worker has called these by the time a workload is built.
OF_THE_WORKER = {"count_traces", "describe", "gpus", "grow_memory", "seed", "set_threads", "threads"}

HEAD = f"""# The library of workload files

{WRITTEN}

What differs between TensorFlow versions is in one module, which a workload can import:

```python
from workloads import compat


def refuse(tf, params):
    return compat.mode_refusal(tf, "graph")
```

Each function takes the `tf` that `build` and `refuse` get. Functions whose name ends in `_refusal` return the reason
why something cannot run in this TensorFlow, or None. The built-in workloads use all of them. A later release may change
them.

| function | what it does |
|---|---|
"""


def compat_page() -> str:
    functions = [
        node
        for node in ast.parse(COMPAT.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in OF_THE_WORKER
    ]
    rows = (f"| `{node.name}({ast.unparse(node.args)})` | {_about(node)} |\n" for node in functions)
    return HEAD + "".join(rows)


def _about(node: ast.FunctionDef) -> str:
    """Return the first paragraph of a function's description, in one line."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()).replace("|", "\\|")

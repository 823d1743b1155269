"""A class name stands for one class, so that a reader who meets it knows what it is."""

import ast
from collections import Counter
from pathlib import Path

ORCHESTRATOR = Path(__file__).parents[2] / "orchestrator"
# Names that still stand for two classes or more. Add none; take one off the list once it stands for one.
SHARED = {
    "Asked", "Built", "Cell", "Ended", "Entry", "Finding", "Gpu", "Grid", "Judged", "Kept", "Line", "Opened", "Part",
    "Ready", "Refused", "Row", "Section", "Shown", "_Table",
}  # fmt: skip


def test_a_class_name_stands_for_one_class_except_for_those_listed():
    names = Counter(
        node.name
        for path in ORCHESTRATOR.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert names["ArmResult"] == 1
    assert {name for name, count in names.items() if count > 1} <= SHARED

"""A class name stands for one class, so that a reader who meets it knows what it is."""

import ast
from collections import Counter
from pathlib import Path

ORCHESTRATOR = Path(__file__).parents[2] / "orchestrator"


def test_a_class_name_stands_for_one_class():
    names = Counter(
        node.name
        for path in ORCHESTRATOR.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert names["ArmResult"] == 1
    assert [name for name, count in names.items() if count > 1] == []

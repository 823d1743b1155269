"""A function is named by what it does, and a property by what it is: neither by a participle."""

import ast
from pathlib import Path

ORCHESTRATOR = Path(__file__).parents[2] / "orchestrator"

PARTICIPLES = (
    "asked compared counted drawn found given gone joined judged kept known listed made named said seen shown sorted "
    "taken told written"
)


def test_no_function_is_named_by_a_participle():
    functions = [
        (path.relative_to(ORCHESTRATOR).as_posix(), node.name)
        for path in ORCHESTRATOR.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert ("terminal/text.py", "escape_unprintable") in functions
    assert [one for one in functions if one[1].lstrip("_").partition("_")[0] in PARTICIPLES.split()] == []

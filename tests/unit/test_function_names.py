"""A function is named by what it does or returns, never by a participle."""

import ast
from pathlib import Path

ORCHESTRATOR = Path(__file__).parents[2] / "orchestrator"

IRREGULAR = [
    "begun",
    "broken",
    "drawn",
    "found",
    "given",
    "gone",
    "kept",
    "known",
    "left",
    "lost",
    "made",
    "said",
    "seen",
    "shown",
    "taken",
    "told",
    "written",
]
# Not participles, though they end like one.
OTHERS = ("feed", "need", "proceed", "seed", "shed", "speed")


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and word not in OTHERS)


def test_no_function_is_named_by_a_participle():
    functions = [
        (path.relative_to(ORCHESTRATOR).as_posix(), node.name)
        for path in ORCHESTRATOR.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert ("terminal/text.py", "escape_unprintable") in functions
    assert [pair for pair in functions if is_participle(pair[1].lstrip("_").partition("_")[0])] == []


# What several modules offer in their own way for one purpose, and commands of two groups.
SHARED = {
    "render": "exports", "write": "exports", "layout": "reports", "as_json": "reports", "run": "cli", "status": "cli",
}  # fmt: skip


def test_no_two_public_functions_of_different_meaning_share_a_name():
    homes: dict[str, list[Path]] = {}
    for path in ORCHESTRATOR.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name != "main":
                homes.setdefault(node.name, []).append(path.relative_to(ORCHESTRATOR))
    assert len(homes["render"]) > 1
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert {
        name: paths for name, paths in shared.items() if {path.parts[0] for path in paths} != {SHARED.get(name)}
    } == {}

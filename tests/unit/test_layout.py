"""What tests share lies in tests/support/; no test module is imported, so that each can be moved or deleted alone."""

import ast
from pathlib import Path, PurePath

import pytest

from tests.conftest import ROOT


def imported_modules(path: Path) -> set[str]:
    """Every name that an import may mean: of `from a import b` both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{one.name}" for one in node.names)}
    return names


def test_no_test_module_is_imported():
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("tests/**/test_*.py")}
    importing = [
        f"{path.relative_to(ROOT)} imports {name}"
        for folder in ("tests", "tools", "bench")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in sorted(imported_modules(path) & modules)
    ]
    assert len(modules) > 100
    assert importing == []


def test_pytest_looks_into_every_folder_of_tests(pytestconfig: pytest.Config):
    """Its own list leaves out `venv`, which is a folder of tests here."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    left_out = pytestconfig.getini("norecursedirs")
    parts = {part for folder in folders for part in folder.relative_to(ROOT).parts}
    assert "venv" in parts
    assert not [part for part in parts if any(PurePath(part).match(pattern) for pattern in left_out)]

"""Finds the files of its folder that a workload imports, by reading them: nothing is run."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from orchestrator import files
from orchestrator.catalog import pinned

# Code that uses one of these may load a file by any name.
DYNAMIC = frozenset({"exec", "__import__", "importlib", "imp", "pkgutil", "runpy", "zipimport"})


def imports_of(path: Path) -> dict[str, Path]:
    """Return the other files that a workload file imports, directly or indirectly, by their names in its folder.

    If one of them loads code in a way that reading does not show, every Python file of the folder counts.
    """
    by_name = {name: file for name, file in pinned.files(path.parent) if name.endswith(".py")}
    # The keys are all names that an import could use for a file, whichever folder is on the path.
    index: dict[str, list[str]] = {}
    above = path.parent.absolute().parts[1:]
    for name in by_name:
        parts = [*above, *name.removesuffix(".py").removesuffix("/__init__").split("/")]
        for start in range(len(parts)):
            index.setdefault(".".join(parts[start:]), []).append(name)
    visited: set[str] = set()
    waiting = [path.name]
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        tree = _parse(by_name.get(name, path))
        modules = set(_modules(tree))
        if DYNAMIC & (modules | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
            visited |= by_name.keys()
            break
        waiting += [other for module in modules for other in index.get(module, ())]
    return {name: by_name[name] for name in sorted(visited) if name != path.name and name in by_name}


def imports_keras_alone(path: Path, script: str | None = None) -> bool:
    """Return whether a workload file, or a file in the folder of a program, imports the package `keras`.

    It does not count if `tf_keras` is also imported. A program finds a `keras` next to its script before the package; a
    workload, whose folder is last on the path, never does.
    """
    if path.is_dir():
        by_name = {name: file for name, file in pinned.files(path) if name.endswith(".py")}
        first = PurePosixPath(script or "").parent
        if {str(first / "keras.py"), str(first / "keras" / "__init__.py")} & by_name.keys():
            return False
        paths = [*by_name.values()]
    else:
        paths = [path, *imports_of(path).values()]
    modules = {module for each in paths for module in _modules(_parse(each))}
    return "keras" in modules and "tf_keras" not in modules


def _parse(path: Path) -> ast.AST:
    try:
        return ast.parse(files.read_named(path, files.MOST_TEXT_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # The code is for another Python, or there is too much of it, so its imports are unknown.
        return ast.parse("exec")


def _modules(tree: ast.AST) -> Iterator[str]:
    """Yield every module that an import names, and the packages around it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            named = [f"{prefix}{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            parts = name.split(".")
            yield from (".".join(parts[:size]) for size in range(1, len(parts) + 1))

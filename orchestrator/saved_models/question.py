"""The question of a check of saved models: which models in which formats, or which existing files.."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import files
from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError

# The container side has the same names (workloads/saving).
MODELS = (
    "functional", "sequential", "subclassed", "nested", "custom_layer", "custom_loss", "registered_loss",
    "preprocessing", "lstm", "mixed_precision", "optimizer_state",
)  # fmt: skip
FORMATS = ("keras", "h5", "savedmodel", "weights", "export")
SAVEDMODEL, SERVED, WEIGHTS = "savedmodel", "served", "weights"
# The endings of files that were saved before; the longest come first.
ENDINGS = {".weights.h5": WEIGHTS, ".keras": "keras", ".hdf5": "h5", ".h5": "h5"}
SUFFIXES = {"keras": ".keras", "h5": ".h5", WEIGHTS: ".weights.h5"}
# A folder of more models than this is a mistake.
MOST_SAVED = 100
FILE = re.compile(r"[A-Za-z_][\w-]*\.py")


@dataclass(frozen=True)
class SavedFile:
    """A file or folder that was saved before."""

    path: Path
    format: str


@dataclass(frozen=True, kw_only=True)
class ModelsQuestion:
    models: tuple[str, ...] = MODELS
    formats: tuple[str, ...] = FORMATS
    # This file of the user has `build(tf)`, and perhaps `inputs(tf)` and `custom_objects(tf)`.
    code: Path | None = None
    # These were saved before. Nothing is saved if there are any.
    saved: tuple[SavedFile, ...] = ()


def choose(flag: str, given: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a comma-separated list, each once; raise UsageError for one that is not known."""
    names = tuple(dict.fromkeys(re.split(r"[,\s]+", given.strip(", ")))) if given is not None else tuple(known)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; choose from {', '.join(known)}"
            raise UsageError(f"{flag}: unknown name {name[:80]!r}{hint}")
    return names


def check_code(path: Path, *, builds: bool) -> Path:
    """Return the user's file; raise UsageError if it cannot define a model. It is parsed and not run."""
    if not FILE.fullmatch(path.name) or not path.is_file():
        raise UsageError(f"--model {path}: name a Python file with build(tf), such as mine/model.py")
    try:
        tree = ast.parse(files.read_text(path), filename=str(path))
    except OSError as error:
        raise UsageError(f"--model {path}: cannot be read: {error.strerror}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"--model {path}: cannot be read as Python: {error}") from error
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if builds and "build" not in found:
        raise UsageError(f"--model {path}: it needs a function build(tf) that returns a model")
    for name in ("build", "inputs", "custom_objects"):
        if name in found and len(found[name].args.args) != 1:
            raise UsageError(f"--model {path}: line {found[name].lineno}: {name} takes one argument, {name}(tf)")
    return path


def find_saved(folder: Path) -> tuple[SavedFile, ...]:
    """Return the models in a folder, or the model at the path itself; raise UsageError if there is none."""
    if found := _recognise(folder):
        return (found,)
    if not folder.is_dir():
        raise UsageError(f"--saved {folder}: name a folder of saved models, or a .keras or .h5 file")
    saved = tuple(found for path in sorted(folder.iterdir()) if (found := _recognise(path)))
    if not saved:
        raise UsageError(f"--saved {folder}: it holds no .keras or .h5 file and no SavedModel folder")
    if len(saved) > MOST_SAVED:
        raise UsageError(f"--saved {folder}: it holds {len(saved)} models; at most {MOST_SAVED} are loaded")
    return saved


def _recognise(path: Path) -> SavedFile | None:
    """Return the model at a path, as its name suggests; a link is refused when it is copied."""
    if path.name.startswith("."):
        return None
    if path.is_dir():
        return SavedFile(path, SAVEDMODEL) if (path / "saved_model.pb").is_file() else None
    format = next((format for ending, format in ENDINGS.items() if path.name.endswith(ending)), None)
    return SavedFile(path, format) if format else None

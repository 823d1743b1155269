"""docs/json.md: the objects that commands print as JSON, from their schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.docs import WRITTEN

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"

HEAD = f"""# JSON

{WRITTEN}

With `--format json` a command prints one object and nothing else to stdout. Each object names its schema. Fields are
added, and never removed or renamed. [Which format for which purpose](exports.md).
"""


def json_page() -> str:
    return "\n".join([HEAD, *(line for path in sorted(SCHEMAS.glob("*.json")) for line in _schema(path))])


def _schema(path: Path) -> Iterator[str]:
    schema = json.loads(path.read_text())
    name, _, told = schema["title"].partition(": ")
    about = (told or schema["description"]).rstrip(".")
    yield f"## {name}\n\n{about[:1].upper()}{about[1:]}. [Its schema](schema/{path.name}) has every field.\n"
    yield "| field | type | what it is |\n|---|---|---|"
    for field, of_field in schema["properties"].items():
        yield f"| `{field}` | {_type(of_field)} | {_cell(of_field.get('description', ''))} |"
    yield ""


def _type(of_field: dict[str, Any]) -> str:
    if "const" in of_field:
        return f"`{of_field['const']}`"
    if "anyOf" in of_field:
        return " or ".join(dict.fromkeys(map(_type, of_field["anyOf"])))
    kinds = of_field.get("type") or ("string" if "enum" in of_field else "object")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _cell(text: str) -> str:
    return text.rstrip(".").replace("|", "\\|")

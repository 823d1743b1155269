"""Rules by which pydantic checks stored types. They do not import pydantic, because every command imports them."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

STRICT: dict[str, str] = {"extra": "forbid"}


@dataclass(frozen=True, eq=False)
class OneOf:
    """Restricts a string to certain names, which need not be known before the first string is read."""

    names: Container[str]

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, name: str) -> str:
        if name not in self.names:
            raise ValueError(f"this tfcompare does not know {name!r}")
        return name

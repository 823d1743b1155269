"""Pydantic's configuration of the stored types, without an import of pydantic: whatever starts imports this."""

STRICT: dict[str, str] = {"extra": "forbid"}

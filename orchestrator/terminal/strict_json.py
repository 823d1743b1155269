"""JSON that every reader accepts, without NaN and infinities, and a short notation for the attributes it takes."""

import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Any

# An attribute whose name has the second ending is divided by this if its name in JSON has the first ending.
UNITS = {("_s", "_ms"): 1e3, ("_s", "_ns"): 1e9, ("_ms", "_ns"): 1e6}
# A magnitude consists of these.
OF_RATIO, OF_DIFFERENCE = "ratio ci_low ci_high", "difference difference_low difference_high"


def dump(value: Any, **form: Any) -> str:
    """Return a value as JSON, with null for each number that JSON cannot hold, such as a loss that is NaN.

    `form` goes to `json.dumps`.
    """
    try:
        return json.dumps(value, allow_nan=False, **form)
    except ValueError:
        # The value is copied only in this case, because a page holds a million figures.
        return json.dumps(_replace_unknown(value), allow_nan=False, **form)


def pick(value: object, names: str) -> dict[str, Any]:
    """Return these attributes of a value, in the types that JSON has: `target reason? workload=case.workload`.

    A name may differ from that of the attribute. The attribute may belong to another attribute, as in `case.workload`;
    if that one is None, the value is null. An empty text is null if its name ends with a question mark. A time changes
    its unit if the two names end with different units, and parameters become an object.
    """
    picked = {}
    for word in names.split():
        name, _, path = word.removesuffix("?").partition("=")
        found: Any = value
        for part in (path or name).split("."):
            found = None if found is None else getattr(found, part)
        if name == "params":
            found = dict(found)
        elif found is not None:
            factors = [factor for (own, its), factor in UNITS.items() if name.endswith(own) and path.endswith(its)]
            found = found / factors[0] if factors else _as_plain(found)
        picked[name] = found or None if word.endswith("?") else found
    return picked


def _as_plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _as_plain(each) for name, each in value.items()}
    return [_as_plain(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _replace_unknown(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _replace_unknown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_unknown(each) for each in value]
    return value

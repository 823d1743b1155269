"""JSON that every reader accepts: it has no NaN and no infinity."""

import json
import math
from typing import Any


def dump(value: Any, **form: Any) -> str:
    """Return a value as JSON, with null for each number that JSON cannot hold, such as a loss that is no number.

    `form` goes to `json.dumps`.
    """
    try:
        return json.dumps(value, allow_nan=False, **form)
    except ValueError:
        # Only then is it copied, for a page holds a million figures.
        return json.dumps(_replace_unknown(value), allow_nan=False, **form)


def _replace_unknown(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _replace_unknown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_unknown(each) for each in value]
    return value

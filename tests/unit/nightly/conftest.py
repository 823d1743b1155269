"""What logs say while somebody is notified."""

import io
import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that gets out of any log. Not caplog, which listens to those, too, that nobody else hears."""
    text, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(text), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)

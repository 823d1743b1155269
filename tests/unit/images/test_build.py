"""The names that images are given."""

import pytest

from orchestrator.images.build import split_name


@pytest.mark.parametrize(
    ("name", "repository", "tag"),
    [
        ("mine", "mine", None),
        ("mine:2.0", "mine", "2.0"),
        ("localhost:5000/tf-2.0", "localhost:5000/tf-2.0", None),
        ("localhost:5000/tf:2.0", "localhost:5000/tf", "2.0"),
        ("mirror/team/tf:2.0-cpu", "mirror/team/tf", "2.0-cpu"),
    ],
)
def test_the_port_of_a_registry_is_no_tag(name: str, repository: str, tag: str | None):
    assert split_name(name) == (repository, tag)

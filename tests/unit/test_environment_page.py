"""Pages name every variable that tfcompare reads, and no other."""

import re

from tests.conftest import ROOT

OURS = re.compile(r"TFCOMPARE_[A-Z_]+[A-Z]")


def names(*paths: str) -> set[str]:
    return {name for path in paths for name in OURS.findall((ROOT / path).read_text())}


def test_the_page_of_variables_names_those_of_the_command_line_and_no_other():
    read = {name for path in (ROOT / "orchestrator").rglob("*.py") for name in OURS.findall(path.read_text())}
    assert names("docs/environment.md") == read


def test_the_page_of_nightlies_names_those_of_compose():
    # The services set the last one themselves.
    assert names("docker-compose.yml") - {"TFCOMPARE_DEVICE"} <= names("docs/nightly.md", "docs/environment.md")

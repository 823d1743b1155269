"""Edits of the text of a user's own table of versions, which leave the rest of it as it was written.

tomlkit stores the comments in front of a table in the table before it, so both edits move them. It is imported only for
an edit, so that other commands start without it.
"""

import tomllib
from itertools import takewhile

from orchestrator.catalog.table import FlavourTable
from orchestrator.catalog.version import FlavourName


def add_flavour(table: str, number: str, device: FlavourName, flavour: FlavourTable, keras: str) -> str:
    """Return the text of a table with this flavour of a version, which it may have for the other device already."""
    import tomlkit

    stated = {key: value for key, value in flavour.model_dump(mode="json").items() if value}
    entry = {**stated, "requirements": tomlkit.item(stated["requirements"]).multiline(True)}
    if number not in tomllib.loads(table).get("version", {}):
        return f"{table}\n{tomlkit.dumps({'version': {number: {'keras': keras, device: entry}}})}"
    document = tomlkit.parse(table)
    version = document["version"][number]
    last = next(reversed(version.value.body))[1].value.body
    trailing = list(takewhile(lambda item: item[0] is None, reversed(last)))
    del last[len(last) - len(trailing) :]
    version[device] = entry
    version[device].value.body.extend(reversed(trailing))
    return tomlkit.dumps(document)


def remove_version(table: str, number: str) -> str:
    """Return the text of a table without one of its versions; text and comments written in between are kept."""
    import tomlkit
    from tomlkit.items import AbstractTable, Table, Whitespace

    document = tomlkit.parse(table)
    tables = (item for key, item in document.body if key and key.key == "version" and isinstance(item, AbstractTable))
    versions = next(versions for versions in tables if number in versions)
    place = next(place for place, (key, _) in enumerate(versions.value.body) if key and key.key == number)
    last = versions.value.body[place][1]
    while isinstance(item := last.value.body[-1][1], Table):
        last = item
    # Comments after the removed version take its place.
    trailing = [item.as_string() for _, item in takewhile(lambda entry: entry[0] is None, reversed(last.value.body))]
    versions.remove(number)
    versions.value.body[place] = (None, Whitespace("".join(reversed(trailing)).lstrip()))
    return document.as_string().rstrip("\n") + "\n"

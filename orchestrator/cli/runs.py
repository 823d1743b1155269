"""How a command names a run: by its folder, or by `last` for the newest one."""

from pathlib import Path

from orchestrator.cli.talk import say

LAST = "last"


def find_run(text: str) -> Path:
    """Return the folder of a run; write `./last` for a folder that is called last."""
    from orchestrator.results.find_runs import newest_run

    return _report("run", newest_run()) if text == LAST else Path(text)


def find_search(text: str) -> Path:
    """Return the folder of a search of `bisect`."""
    from orchestrator.results.find_runs import newest_search

    return _report("search", newest_search()) if text == LAST else Path(text)


def find_question(text: str) -> Path:
    """Return the folder of a question of `why`."""
    from orchestrator.results.find_runs import newest_question

    return _report("question", newest_question()) if text == LAST else Path(text)


def find_upgrade(text: str) -> Path:
    """Return the folder of an upgrade."""
    from orchestrator.results.find_runs import newest_upgrade

    return _report("upgrade", newest_upgrade()) if text == LAST else Path(text)


def find_atlas(text: str) -> Path:
    """Return the folder of an atlas."""
    from orchestrator.results.find_runs import newest_atlas

    return _report("atlas", newest_atlas()) if text == LAST else Path(text)


def _report(what: str, path: Path) -> Path:
    say(f"the newest {what}: {path}")
    return path

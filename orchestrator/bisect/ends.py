"""The two ends of a search, and the candidates from one to the other: releases, or commits of a package."""

import shlex
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator import catalog
from orchestrator.bisect import commits
from orchestrator.bisect.actions import SearchActions
from orchestrator.bisect.candidates import releases_between, releases_of_package
from orchestrator.bisect.state import GIT, Question
from orchestrator.catalog import targets
from orchestrator.catalog.revisions import pin_revisions
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import UsageError
from orchestrator.terminal.view import View


def settle_ends(question: Question, actions: SearchActions, view: View) -> tuple[Question, tuple[str, ...]]:
    """Return the question with exact ends, and the versions from one to the other; raise UsageError if that fails."""
    if question.is_over_commits:
        return _find_commits_of_package(question, actions, view)
    texts = pin_revisions((question.good, question.bad), question.run.own_workloads)
    good, bad = map(_read_end, texts)
    device = question.run.environments.device
    if question.over:
        return _find_releases_of_package(question, (good, bad), actions, view)
    if good.changes != bad.changes:
        raise UsageError(
            f"--good and --bad have different changes ({shlex.join(good.changes) or 'none'}, "
            f"{shlex.join(bad.changes) or 'none'}): give both the same changes, which then apply to every version"
            f"{_advise_over(good, bad)}"
        )
    numbers = [lock_version(end.version, device, actions, view) for end in (good, bad)]
    return replace(question, good=numbers[0], bad=numbers[1], changes=good.changes), releases_between(*numbers)


def _read_end(text: str) -> Changed:
    end = Changed(version=text) if targets.is_plain(text) else targets.parse_target(text)
    if not end.version or end.freeze or end.package or end.name:
        raise UsageError(f"{text!r}: --good and --bad each take a version, without wheel=, image=, freeze= or a name")
    return end


def _advise_over(good: Changed, bad: Changed) -> str:
    """Return advice to search the releases of a package, if the ends differ only in its pin."""
    pinned = {pin.partition("==")[0] for pin in {*good.pins} ^ {*bad.pins} if "==" in pin}
    if len(pinned) == 1 and replace(good, pins=()) == replace(bad, pins=()):
        return f". To search the releases of a package, add --over {pinned.pop()}"
    return ""


def _find_releases_of_package(
    question: Question, ends: tuple[Changed, Changed], actions: SearchActions, view: View
) -> tuple[Question, tuple[str, ...]]:
    """Return the question and the candidates of a search over a package, which both ends pin."""
    over, numbers = canonicalize_name(question.over), []
    if over in targets.TENSORFLOWS:
        raise UsageError(f"--over {question.over}: leave it out; without it, TensorFlow's versions are searched")
    if question.nightlies:
        raise UsageError(f"--nightlies varies TensorFlow, and --over {question.over} does not; leave one of them out")
    for name, end in zip(("--good", "--bad"), ends, strict=True):
        pins = [Requirement(pin) for pin in end.pins if targets.name_pinned(pin) == over]
        exact = [each.version for pin in pins for each in pin.specifier if each.operator == "=="]
        if len(pins) != 1 or len(exact) != 1 or "*" in exact[0]:
            raise UsageError(
                f"{name} '{end}': --over {question.over} needs a target that pins one release of it, such as "
                f"'2.20 {question.over}==3.8.0'"
            )
        numbers.append(exact[0])
    others = [replace(end, pins=tuple(pin for pin in end.pins if targets.name_pinned(pin) != over)) for end in ends]
    if others[0] != others[1]:
        raise UsageError(
            f"--good '{ends[0]}' and --bad '{ends[1]}' differ in more than {question.over}: a search over a package "
            "keeps everything else fixed, including the version of TensorFlow"
        )
    device = question.run.environments.device
    version = lock_version(others[0].version, device, actions, view)
    flavours = catalog.resolve_versions((version,), 1)[0].on(device)
    python = others[0].python or (flavours[0].python.number if flavours else "")
    candidates = releases_of_package(over, numbers[0], numbers[1], actions.releases(question.over, python))
    asked = replace(
        question, good=candidates[0], bad=candidates[-1], changes=others[0].changes, over=over, version=version
    )
    return asked, candidates


def _find_commits_of_package(
    question: Question, actions: SearchActions, view: View
) -> tuple[Question, tuple[str, ...]]:
    """Return the question and the candidates of a search over the commits of a package, which both ends name."""
    question = replace(question, over=f"{canonicalize_name(question.package)}{GIT}")
    if actions.obstacle:
        raise UsageError(f"--over {question.over} builds on this machine; leave --on out")
    if question.nightlies:
        raise UsageError(f"--nightlies varies TensorFlow, and --over {question.over} does not; leave one of them out")
    repository = commits.find_repository(question, view)
    (good, held), (bad, other) = (
        commits.find_end(question, text, repository) for text in (question.good, question.bad)
    )
    if held != other:
        raise UsageError(
            f"--good {question.good!r} and --bad {question.bad!r} differ in more than {question.package}: a search "
            "over its commits keeps everything else fixed, including the version of TensorFlow"
        )
    (text,) = pin_revisions((held,), question.run.own_workloads)
    end = _read_end(text)
    version = lock_version(end.version, question.run.environments.device, actions, view)
    candidates = commits.list_candidates(question, repository, good, bad)
    asked = replace(question, good=candidates[0], bad=candidates[-1], changes=end.changes, version=version)
    return asked, candidates


def lock_version(name: str, device: FlavourName, actions: SearchActions, view: View) -> str:
    """Return the full number of one version, which is locked on first use."""
    (provided,) = actions.provide((name,), view, device)
    versions = catalog.resolve_versions((provided,), 1)
    if len(versions) != 1:
        raise UsageError(f"{name!r} names {len(versions)} versions; --good and --bad take one each")
    return versions[0].number

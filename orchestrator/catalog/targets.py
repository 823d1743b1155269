"""Targets as users write them: a version with optional changes, such as `2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off`.

Packages are pinned in pip's syntax, such as `2.20 keras==3.8.0`. `@REF` is a revision of the user's own code.

A text without changes names versions the way `--versions` does. Any other text is one target. Its name follows
`as`; without one, the name is the version with the changes.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.catalog import did_you_mean, variables
from orchestrator.errors import UsageError

GRAMMAR = (
    "a target is VERSION, wheel=FILE, freeze=FILE or image=NAME, then any of NAME=VALUE, PACKAGE==VERSION, py=3.8, "
    "keras=2, wheel=FILE of another package, as-of=DATE, today and @REF of your code, then optionally `as NAME`; "
    "without TensorFlow, it is keras==VERSION backend=jax or backend=torch"
)
TODAY, AS_OF, FREEZE, BACKEND = "today", "as-of", "freeze", "backend"
KEYS = ("py", "keras", "wheel", "image", FREEZE, AS_OF, TODAY, BACKEND)
# These hold a revision, and a wheel that does not take the place of a version.
REVISION_KEY, PACKAGE = "@", "wheel="
# Keras computes with one of these instead of TensorFlow.
BACKENDS = ("jax", "torch")
FIRST_WITH_BACKENDS = Number("3.0.0")
PYTHON = re.compile(r"3\.\d{1,2}")
NAME = re.compile(r"[A-Za-z][\w.-]{0,39}")
# Names in files and tables have this form. A target with other characters, or more of them, needs a name after `as`.
USUAL_NAME = re.compile(r"[\w.+=,:<>~!*@\[\]-]{1,60}")
# A revision of the user's code, as git names it; once it is found, its commit follows.
REVISION = re.compile(r"@(?P<ref>\w[\w./~^+-]{0,99})(=(?P<commit>[0-9a-f]{40}))?")
# This matches a word that pip would understand, such as keras==3.8.0 or numpy<2, but no variable with a value.
PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[^\[\]]*\])?\s*(===?|~=|!=|<=?|>=?)(?P<rest>.*)")
# These packages are TensorFlow itself; the first word of a target names its version.
TENSORFLOWS = frozenset(
    {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tf-nightly", "tf-nightly-cpu"}
)
LONGEST = 4096
COMMIT = re.compile(r"[0-9a-f]{40}")
# Commits are shown with this many digits.
SHORT_COMMIT = 12


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A target with changes, as it was written.

    A wheel, an image and another backend of Keras have no version; a freeze may name TensorFlow.
    """

    version: str = ""
    wheel: Path | None = None
    image: str = ""
    # This wheel takes the place of a package of the version.
    package: Path | None = None
    # This file lists the packages of one of the user's environments.
    freeze: Path | None = None
    variables: tuple[tuple[str, str], ...] = ()
    python: str = ""
    # This is true if `tf.keras` is Keras 2.
    keras_2: bool = False
    # These are requirements in pip's syntax.
    pins: tuple[str, ...] = ()
    # Packages are resolved from the index as it was on this day.
    as_of: str = ""
    # The user wrote `today` on this day: packages are resolved from the index as it is when they are locked.
    today: str = ""
    # Keras computes with this instead of TensorFlow.
    backend: str = ""
    # The user's own code is that of this revision, and this is its commit once it was found.
    revision: str = ""
    commit: str = ""
    name: str = ""

    @property
    def changed_packages(self) -> tuple[str, ...]:
        """The changes of the installed packages, each as it is written."""
        keys = {"py": self.python, "keras": "2" if self.keras_2 else ""}
        # Without a version, the freeze is the first word.
        keys[FREEZE] = str(self.freeze) if self.freeze and (self.version or self.wheel) else ""
        last = {AS_OF: self.as_of, TODAY: self.today, BACKEND: self.backend}
        return (
            *(f"{key}={value}" for key, value in keys.items() if value),
            *self.pins,
            *([f"wheel={self.package}"] if self.package else []),
            *(f"{key}={value}" for key, value in last.items() if value),
        )

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes, each as it is written."""
        code = f"@{self.revision}{f'={self.commit}' if self.commit else ''}"
        variables = (f"{name}={value}" for name, value in self.variables)
        return (*self.changed_packages, *variables, *([code] if self.revision else []))

    def build_name(self, number: str) -> str:
        """Return the target's own name, or else the number with the changes.

        A freeze and a wheel are named without their folders, and a revision without its commit.
        """
        if self.revision and not self.name:
            # The name of a commit is long.
            code = self.revision[:SHORT_COMMIT] if COMMIT.fullmatch(self.revision) else self.revision
            return f"{replace(self, revision='', commit='').build_name(number)}@{code}"
        if self.backend:
            # A pin of the backend names it as well.
            own = [f"{BACKEND}={self.backend}"]
            named = [] if self.backend in map(name_pinned, self.pins) else [self.backend]
            rest = (change for change in self.changes if change not in (*self.pins, *own))
            return self.name or "+".join((*self.pins, *named, *rest))
        short = {f"{TODAY}={self.today}": TODAY}
        for key, path in ((FREEZE, self.freeze), ("wheel", self.package)):
            if path:
                short[f"{key}={path}"] = f"{key}={path.name}"
        return self.name or "+".join((number, *(short.get(change, change) for change in self.changes)))

    @property
    def is_foreign(self) -> bool:
        """Whether the target is in no table of versions: an image, a backend, or something of the user's own."""
        return not self.version or bool(self.freeze or self.package or self.revision)

    def __str__(self) -> str:
        own = f"wheel={self.wheel}" if self.wheel else f"image={self.image}" if self.image else ""
        words = [self.version or own or f"{FREEZE}={self.freeze}", *self.changes]
        if self.backend:
            # Such a target begins with its Keras.
            words = sorted(self.changes, key=lambda change: not (change in self.pins and _is_keras(change)))
        return shlex.join([*words, *(["as", self.name] if self.name else [])])


def is_plain(text: str) -> bool:
    """Return whether a text names versions, and changes nothing."""
    return not _is_changed_target(text) and len(text.split()) < 2


def _is_changed_target(text: str) -> bool:
    """Return whether a text is one target with changes, and not a list of versions."""
    words = text.split()
    return any(sign in text for sign in "=<>~!@") or "as" in words or TODAY in words


def split_targets(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that several texts name; only a text without changes may be a list with commas."""
    return tuple(
        name
        for text in texts
        for name in ([text] if _is_changed_target(text) else re.split(r"[,\s]+", text.strip(", \t\n")))
        if name
    )


def parse_target(text: str) -> Changed:
    """Parse a target with changes; raise UsageError, quoting the text, for anything else."""
    if len(text) > LONGEST:
        raise UsageError(f"a target has at most {LONGEST} characters, and this one has {len(text)}; {GRAMMAR}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"target {text!r}: a quotation mark is not closed; {GRAMMAR}") from error
    if not text.isprintable():
        raise UsageError(f"target {text!r}: it has characters that cannot be printed; {GRAMMAR}")
    name = ""
    if "as" in words:
        *words, word, name = words if words[-1] != "as" else [*words, ""]
        if word != "as" or "as" in words or not NAME.fullmatch(name):
            raise UsageError(
                f"target {text!r}: the last word, after `as`, is its name: at most 40 letters, digits, '_', '-' "
                "and '.', beginning with a letter"
            )
        if name in (catalog.ALL, catalog.LATEST) or catalog.NIGHTLY.fullmatch(name):
            raise UsageError(f"target {text!r}: {name!r} stands for versions; choose another name")
    if not words:
        raise UsageError(f"target {text!r}: there is no version in it; {GRAMMAR}")
    first, *others = words
    has_backend = any(word.startswith(f"{BACKEND}=") for word in others)
    if (PINNED.fullmatch(first) and not has_backend) or first == TODAY or first.startswith("@"):
        raise UsageError(f"target {text!r}: it begins with {first}, and not with a version; {GRAMMAR}")
    found: dict[str, str] = {}
    pins = []
    for word in (first, *others) if "=" in first else others:
        if word.startswith("@"):
            if REVISION_KEY in found:
                raise UsageError(f"target {text!r}: it names two revisions of your code; leave one out")
            _check_revision(text, word)
            found[REVISION_KEY] = word
            continue
        if PINNED.fullmatch(word):
            pins.append(check_pin(f"target {text!r}", word))
            continue
        key, equals, value = word.partition("=")
        if key == TODAY and not equals:
            key, equals, value = TODAY, "=", f"{datetime.now(UTC):%Y-%m-%d}"
        if not equals:
            advice = "; packages come from the index by version, and your own wheel is written wheel=FILE"
            raise UsageError(
                f"target {text!r}: {word!r} is not a change such as NAME=VALUE or PACKAGE==VERSION"
                f"{advice if '/' in word or '@' in word else ''}; {GRAMMAR}"
            )
        if not value and key in KEYS:
            raise UsageError(f"target {text!r}: {key}= has no value; {GRAMMAR}")
        _check_change(text, key, value, first=word is first)
        if key == "wheel" and word is not first:
            key = PACKAGE
        if key in found:
            raise UsageError(f"target {text!r}: {key.rstrip('=')} is given twice")
        found[key] = value
    return _make(text, "" if "=" in first else first, found, tuple(pins), name)


def _check_revision(text: str, word: str) -> None:
    if not REVISION.fullmatch(word):
        raise UsageError(
            f"target {text!r}: {word} names no revision of your code: after '@' comes a branch, a tag or a commit, "
            "such as @main, @v1.2 or @HEAD~1"
        )


def check_pin(where: str, word: str) -> str:
    """Return a requirement in pip's syntax; raise UsageError if it suits no target."""
    try:
        requirement = Requirement(word)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"{where}: {word!r} is not a pip requirement such as keras==3.8.0 or numpy<2: {reason}"
        ) from error
    if requirement.url:
        raise UsageError(f"{where}: {requirement.name} has a URL; packages come from the index by version")
    if requirement.marker:
        raise UsageError(f"{where}: {word!r} has a marker after ';', but a target has only one Python: leave it out")
    if canonicalize_name(requirement.name) in TENSORFLOWS:
        raise UsageError(
            f"{where}: TensorFlow is pinned twice, by the first word and by {word}; leave {word} out, and write its "
            "number as the first word"
        )
    return word


def name_pinned(pin: str) -> str:
    """Return the name of the package that a requirement is about, as indexes compare it."""
    return str(canonicalize_name(Requirement(pin).name))


def _check_change(text: str, key: str, value: str, *, first: bool) -> None:
    if key == "image":
        if not first:
            raise UsageError(f"target {text!r}: {key}= takes the place of a version, and so comes first; {GRAMMAR}")
    elif key in (FREEZE, "wheel"):
        pass
    elif first:
        raise UsageError(f"target {text!r}: it begins with {key}=, and not with a version; {GRAMMAR}")
    elif key == "keras" and value != "2":
        _refuse_keras(text, value)
    elif key == BACKEND:
        if value not in BACKENDS:
            advice = "; every target with a version has it" if value == "tensorflow" else did_you_mean(value, BACKENDS)
            raise UsageError(f"target {text!r}: backend={value}: it is {' or '.join(BACKENDS)}{advice}")
    elif key == "py" and not PYTHON.fullmatch(value):
        raise UsageError(f"target {text!r}: py={value}: expected a Python version such as 3.8")
    elif key in (AS_OF, TODAY):
        _check_day(text, key, value)
    elif key in KEYS:
        pass
    elif not variables.NAME.fullmatch(key):
        is_number = re.fullmatch(r"\d+(\.\w+)*", value)
        advice = f"; to pin a package, write {key}=={value}" if is_number else ""
        raise UsageError(
            f"target {text!r}: unknown change {key!r}{did_you_mean(key, KEYS, cutoff=0.6)}{advice}; variables are "
            f"written in capital letters, and {GRAMMAR}"
        )
    elif reason := variables.why_not_settable(key, value):
        raise UsageError(f"target {text!r}: {key} {reason}")


def _refuse_keras(text: str, value: str) -> None:
    if value == "3":
        raise UsageError(
            f"target {text!r}: versions from 2.16 on have Keras 3 anyway; leave keras=3 out, or pin a release of it, "
            "such as keras==3.8.0"
        )
    number = value if value.count(".") > 1 else f"{value}.0" if re.fullmatch(r"\d+\.\d+", value) else "3.8.0"
    raise UsageError(f"target {text!r}: keras={value}: write keras=={number}; keras=2 alone makes `tf.keras` Keras 2")


def _check_day(text: str, key: str, value: str) -> None:
    try:
        day = date.fromisoformat(value)
    except ValueError as error:
        raise UsageError(f"target {text!r}: {key}={value}: expected a date such as 2026-11-01") from error
    if value != day.isoformat():
        raise UsageError(f"target {text!r}: {key}={value}: expected a date such as 2026-11-01")
    if day > datetime.now(UTC).date():
        raise UsageError(f"target {text!r}: {key}={value}: that day is in the future")


def _make(text: str, version: str, found: Mapping[str, str], pins: tuple[str, ...], name: str) -> Changed:
    paths = {key: Path(found[key]).expanduser().absolute() for key in ("wheel", FREEZE, PACKAGE) if key in found}
    code = REVISION.fullmatch(found.get(REVISION_KEY, ""))
    changed = Changed(
        version=version,
        wheel=paths.get("wheel"),
        freeze=paths.get(FREEZE),
        package=paths.get(PACKAGE),
        image=found.get("image", ""),
        python=found.get("py", ""),
        keras_2="keras" in found,
        pins=pins,
        as_of=found.get(AS_OF, ""),
        today=found.get(TODAY, ""),
        backend=found.get(BACKEND, ""),
        variables=tuple((key, value) for key, value in found.items() if key not in (*KEYS, REVISION_KEY, PACKAGE)),
        revision=code["ref"] if code else "",
        commit=(code["commit"] or "") if code else "",
        name=name,
    )
    if changed.image and (changed.changed_packages or changed.freeze):
        change = next(iter(changed.changed_packages), f"{FREEZE}={changed.freeze}")
        raise UsageError(f"target {text!r}: an image is used as it is; {change} would change it")
    if changed.wheel and changed.keras_2:
        raise UsageError(f"target {text!r}: keras= works only for versions of the table, not for a wheel")
    if changed.wheel and changed.package:
        raise UsageError(f"target {text!r}: your own TensorFlow takes no second wheel; pin a release instead")
    if changed.as_of and changed.today:
        raise UsageError(f"target {text!r}: as-of= and today name two days; leave one of them out")
    if changed.freeze and (changed.as_of or changed.today):
        raise UsageError(f"target {text!r}: a freeze names all packages itself; leave as-of= and today out")
    if changed.backend:
        _check_backend(text, changed)
    if not (version or name or changed.freeze or changed.backend):
        raise UsageError(f"target {text!r}: give it a name, such as `{text} as mine`")
    if version or name or changed.backend:
        check_name(text, changed, version)
    return changed


def _check_backend(text: str, changed: Changed) -> None:
    """Raise UsageError for a target without TensorFlow that names something of TensorFlow, or no Keras."""
    usual = f"'keras==3.15.1 {BACKEND}={changed.backend}'"
    if changed.version or changed.wheel or changed.image or changed.freeze:
        first = changed.version or "the first word"
        raise UsageError(
            f"target {text!r}: {BACKEND}={changed.backend} takes the place of TensorFlow: leave {first} out, and begin "
            f"with a release of Keras, as in {usual}"
        )
    if not [pin for pin in changed.pins if _is_keras(pin)] or len(set(map(name_pinned, changed.pins))) < len(
        changed.pins
    ):
        raise UsageError(f"target {text!r}: it names one release of Keras, and no package twice, as in {usual}")
    [keras] = (pin for pin in changed.pins if _is_keras(pin))
    if Number(next(iter(Requirement(keras).specifier)).version) < FIRST_WITH_BACKENDS:
        raise UsageError(f"target {text!r}: Keras has other backends from 3.0.0 on; name such a release, as in {usual}")
    if changed.package:
        raise UsageError(f"target {text!r}: wheel= and {BACKEND}= do not go together: pin a release of the package")
    if changed.keras_2 or changed.as_of or changed.today:
        change = "keras=2" if changed.keras_2 else AS_OF if changed.as_of else TODAY
        advice = "Keras 2 has no backend" if changed.keras_2 else f"pin {changed.backend} instead"
        raise UsageError(f"target {text!r}: {change} and {BACKEND}= do not go together: {advice}")


def _is_keras(pin: str) -> bool:
    """Return whether a requirement is one release of Keras."""
    specifiers = list(Requirement(pin).specifier)
    exact = [each for each in specifiers if each.operator == "==" and not each.version.endswith(".*")]
    return name_pinned(pin) == "keras" and bool(exact) and len(specifiers) == 1


def check_name(text: str, changed: Changed, number: str) -> str:
    """Return the name of a target of this number; raise UsageError if it does not suit tables and file names."""
    name = changed.build_name(number)
    if not (changed.name or USUAL_NAME.fullmatch(name)):
        raise UsageError(f"target {text!r}: its name does not suit tables and file names; add `as` and a short name")
    return name

"""Explain from the output of Docker and pip why a build failed and what to do; nothing here queries anything."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal[
    "base-gone", "base-digest", "base-refused", "base-certificate", "registry-names", "registry-unreachable",
    "registry-limit", "no-python", "other-machine", "hash", "missing", "source", "index-refused", "index-certificate",
    "index-names", "index-other", "index-unreachable", "disk", "memory",
]  # fmt: skip

# Messages of our own index server (index/proxy.py) in the log of a build begin with this.
MARK = "index: "
UNKNOWN = "Run it again with -v to see the log as it goes"
# Docker prints this if a step of the recipe failed, and not the download of its base.
STEP = re.compile(r"returned a non-zero code")


@dataclass(frozen=True)
class Failure:
    kind: Kind
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}. {self.advice}"


@dataclass(frozen=True)
class _Sign:
    kind: Kind
    words: str
    what: str
    advice: str


ANOTHER = (
    "Name another base image with --base (of a mirror, your own, or from `tfcompare images load`), or use --engine venv"
)

ANYWHERE = (
    _Sign(
        "disk",
        r"no space left on device|disk quota exceeded|not enough free space",
        "the disk is full",
        "Free some space ({holds}) and run it again: finished parts are kept, and incomplete ones are not used",
    ),
)

# These match what the registry or the engine reports about a base.
BASE = (
    _Sign(
        "base-digest",
        r"verification failed for digest",
        "the registry serves something else under the digest of the base image {base}",
        "Do not trust it: try again, or take it from another registry with --base",
    ),
    _Sign(
        "other-machine",
        r"no matching manifest for (?P<machine>\S+)|exec format error",
        "the base image {base} is not for this kind of processor",
        ANOTHER,
    ),
    _Sign(
        "registry-limit",
        r"toomanyrequests|too many requests|pull rate limit",
        "the registry of the base image {base} allows no more pulls for now",
        "Wait, log in with `docker login`, or name a base image of a mirror with --base",
    ),
    _Sign(
        "base-refused",
        r"unauthorized|authentication required|no basic auth credentials|403 forbidden",
        "the registry does not give out the base image {base} without a login",
        "Log in to it with `docker login`, or name another base image with --base",
    ),
    _Sign(
        "base-gone",
        r"manifest unknown|manifest for .* not found|name unknown|repository .* not found|"
        r"repository does not exist|no such image",
        "the base image {base} is not in the registry",
        ANOTHER,
    ),
    _Sign(
        "base-certificate",
        r"x509:|certificate signed by unknown authority|certificate verify failed",
        "the Docker engine does not trust the certificate of the registry of the base image {base}",
        "Install the registry's certificate authority for the engine (as /etc/docker/certs.d/HOST/ca.crt, or in the "
        "system's certificates, and restart Docker); --ca-bundle is for the package index only",
    ),
    _Sign(
        "registry-names",
        r"no such host|server misbehaving|temporary failure in name resolution|dial tcp: lookup",
        "the registry of the base image {base} was not reached: its name cannot be resolved",
        "Check the network and the DNS of the Docker engine. Without a network, use a local base with "
        "--base, `tfcompare images load`, or --engine venv",
    ),
    _Sign(
        "registry-unreachable",
        r"dial tcp|tls handshake|i/o timeout|connection re(fused|set)|deadline exceeded|\beof\b|proxyconnect|"
        r"request canceled",
        "the registry of the base image {base} was not reached",
        "Check the network and the proxies of the Docker engine, name a local base or one of a mirror "
        "with --base, or use --engine venv",
    ),
    _Sign(
        "no-python",
        r"exec: \"?/bin/sh|stat /bin/sh",
        "the base image {base} has no shell, and so no Python that builds could use",
        "Use --base to name an image that has Python {python} with venv and pip",
    ),
)

# These match what pip, or a step of the recipe, printed.
STEPS = (
    _Sign(
        "no-python",
        r"python[\d.]*: (command )?not found|no module named '?(venv|pip|ensurepip)\b",
        "the base image {base} has no Python that builds could use (python3 with venv and pip)",
        "Use --base to name an image that has Python {python}",
    ),
    _Sign(
        "other-machine",
        r"exec format error",
        "the base image {base} is not for this kind of processor",
        ANOTHER,
    ),
    _Sign(
        "index-other",
        MARK + r"(?P<host>\S+) is not served",
        "the pip of the base image {base} is set to ask {host}",
        "With --index-url or --wheelhouse no other index is used: use --base to name a base image without pip settings",
    ),
    # This comes before the hashes, because a transfer that broke off also has another hash.
    _Sign(
        "index-unreachable",
        MARK + r"the connection to (?P<host>\S+) broke",
        "the package index {host} broke off in the middle of a file",
        "Run it again; finished parts are kept",
    ),
    _Sign(
        "hash",
        r"do not match the hashes",
        "the index served a different file from the one in the lock",
        "Do not trust it, unless you know why the file changed; then lock the version again",
    ),
    _Sign(
        "index-certificate",
        r"certificate_verify_failed|certificate verify failed|sslcertverificationerror",
        "a certificate on the way to the package index is not trusted",
        "Name the certificate authority of your proxy or mirror with --ca-bundle FILE",
    ),
    _Sign(
        "index-refused",
        MARK + r"(?P<host>\S+) answered 40[137]|http error 40[13]|40[13] (client )?error|credentials not correct",
        "the package index requires a login, or refuses this one",
        "Put the user and password into TFCOMPARE_INDEX_URL, into --index-url or into ~/.netrc",
    ),
    _Sign(
        "index-names",
        r"temporary failure in name resolution|name or service not known|failed to resolve|"
        r"no address associated with hostname|nameresolutionerror",
        "the package index was not reached: its name cannot be resolved",
        "Check this machine's network and DNS, or name a mirror with --index-url. Without a network, use "
        "--wheelhouse FOLDER, or `tfcompare images load`",
    ),
    _Sign(
        "index-unreachable",
        r"newconnectionerror|connecttimeout|read timed out|readtimeouterror|connection (refused|reset|aborted|broken)|"
        r"remote end closed connection|cannot connect to proxy|network is unreachable|no route to host|"
        + MARK
        + r"\S+ (was not reached|answered 5\d\d)",
        "the package index was not reached",
        "Check the network and the proxies, or name a mirror with --index-url or a folder of wheels with --wheelhouse",
    ),
    _Sign(
        "missing",
        r"(?:no matching distribution found for|could not find a version that satisfies the requirement) "
        r"(?P<name>[^\s;(]+)",
        "{origin} has no file of {name} for this Python",
        "{fill}",
    ),
    _Sign(
        "source",
        r"(?:failed building wheel for|could not build wheels for|failed to build) (?P<name>[\w.-]+)",
        "{name} is available only as source, and could not be built",
        "Put its wheel in a --wheelhouse and lock the version again, or use --base to name an image that can build it",
    ),
    _Sign(
        "memory",
        r"returned a non-zero code: 137|\bkilled\b",
        "the build was killed, most likely because memory ran out",
        "Build fewer at once (`tfcompare images build --at-once 1`), or give it more memory",
    ),
)


def of_image(error: str, log: str, *, base: str, python: str, wheelhouse: Path | None = None) -> Failure | None:
    """Explain a failed build or pull by Docker.

    `error` is the engine's last message, `log` the end of what was printed.
    """
    names = {
        "base": base,
        "python": python,
        "holds": "`tfcompare images prune` and `docker system df` show the space that images take",
        **_origin(wheelhouse),
    }
    failed_step = STEP.search(error) is not None
    text = f"{log}\n{error}" if failed_step else error
    failure = _first((*ANYWHERE, *(STEPS if failed_step else BASE)), text, names)
    if failure and failure.kind == "base-gone" and "@" in base:
        return Failure(
            "base-digest",
            f"the registry has no image with the digest of {base}; it may have been deleted",
            "Ask the registry for its current digest with `tfcompare images lock`, or name another base with --base",
        )
    return failure


def of_install(log: str, *, folder: Path, wheelhouse: Path | None = None) -> Failure | None:
    """Explain a failed install by pip on this machine, into an environment in `folder`."""
    holds = f"`tfcompare environments prune` frees what nothing uses in {folder}"
    return _first((*ANYWHERE, *STEPS), log, {"base": "", "python": "", "holds": holds, **_origin(wheelhouse)})


def _origin(wheelhouse: Path | None) -> dict[str, str]:
    """Describe the source that lacks a missing package."""
    if wheelhouse:
        fill = "Put it there (docs/images.md says how), or also name an index with --index-url"
        return {"origin": f"the wheelhouse {wheelhouse}", "fill": fill}
    fill = (
        "It was withdrawn, or a mirror lacks it: name another index with --index-url, put it into a --wheelhouse, "
        "or lock the version again"
    )
    return {"origin": "the index", "fill": fill}


def _first(signs: tuple[_Sign, ...], text: str, names: Mapping[str, str]) -> Failure | None:
    for sign in signs:
        if match := re.search(sign.words, text, re.IGNORECASE):
            values = {**names, **{name: value or "" for name, value in match.groupdict().items()}}
            return Failure(sign.kind, sign.what.format(**values), sign.advice.format(**values))
    return None

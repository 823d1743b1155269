"""Recognize secrets in addresses, variables and command lines, and show these without them."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# This matches a login in an address. The path of an index's address may also be a token.
LOGIN = re.compile(r"(?<=://)[^/\s]+@")
INDEX_ADDRESS = re.compile(r"(?P<origin>\w+://[^/\s]*).*")
SECRET_NAME = re.compile("INDEX|NOTIFY|PASS|TOKEN|SECRET|KEY|AUTH|CREDENTIAL", re.IGNORECASE)
# Proxies are also written without a scheme; the path of a web address may be a token.
SECRET_VALUE = re.compile(rf"{LOGIN.pattern}|^[^/\s:@]+:[^/\s@]+@|https?://[^/\s]+/\S")
REFERENCES = re.compile(r"(\$\{[A-Za-z_][A-Za-z0-9_]*\})+")
# These schemes are followed by a host. Many others have a token in its place.
WITH_HOST = frozenset(
    {
        "apprise", "apprises", "form", "forms", "gotify", "gotifys", "http", "https", "irc", "ircs", "json", "jsons",
        "mailto", "mailtos", "mmost", "mmosts", "mqtt", "mqtts", "nctalk", "nctalks", "rocket", "rockets", "synology",
        "synologys", "workflow", "workflows", "xml", "xmls", "xmpp", "xmpps",
    }
)  # fmt: skip
# An @ in one of these belongs to an address and does not end a password.
ADDRESSES = re.compile(r"[?&](to|from|cc|bcc|reply)=[^?&#/]*")

# The values of these flags may hold a secret.
NOTIFY, INDEX_URL = "--notify", "--index-url"


def mask_url(url: str) -> str:
    """Return a URL without anything that could be a secret; in doubt, leave out the host as well."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{1,15}", scheme):
        return "…"
    scheme = scheme.lower()
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # A password may contain a character that ends the host; what looks like the host is then part of the password.
    beyond = ADDRESSES.sub("", rest[len(authority) :])
    host = re.sub(r":\d{1,5}$", "", authority.rpartition("@")[2])
    if scheme not in WITH_HOST or "@" in beyond or not _is_host(host):
        return f"{scheme}://…"
    return f"{scheme}://{host}/…"


def mask_notify(url: str) -> str:
    """Return a notification URL as it may be shown: names of variables as they are, anything else masked."""
    return url if is_reference(url) else mask_url(url)


def mask_index(url: str) -> str:
    """Return the address of an index as it may be shown: without login and path."""
    match = INDEX_ADDRESS.fullmatch(mask_login(url))
    return f"{match['origin']}/..." if match else "..."


def mask_login(text: str) -> str:
    return LOGIN.sub("****@", text)


def is_reference(url: str) -> bool:
    """Return whether a notification URL consists only of ${NAME} references, which contain nothing secret."""
    return REFERENCES.fullmatch(url.strip()) is not None


def may_be_secret(name: str, value: str) -> bool:
    """Return whether an environment variable may hold a secret, by its name or by its value."""
    return bool(SECRET_NAME.search(name) or SECRET_VALUE.search(value))


def _is_host(text: str) -> bool:
    if text.startswith("["):
        try:
            return bool(ipaddress.IPv6Address(text[1:].removesuffix("]")))
        except ValueError:
            return False
    return bool(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?", text))


@dataclass(frozen=True)
class CommandLine:
    """A command line, and the secrets that were removed from it."""

    words: tuple[str, ...]
    notify: tuple[str, ...] = field(repr=False)
    index_url: str | None = field(repr=False)


def without_secrets(words: Sequence[str]) -> CommandLine:
    """Remove anything that may be a secret.

    These are the index's address, and every --notify that does more than name variables.
    """
    remaining: list[str] = []
    notify: list[str] = []
    index_url = None
    for flag, value, written in _flags(words):
        if flag == INDEX_URL:
            index_url = value
        elif flag == NOTIFY and not is_reference(value):
            notify.append(value)
        else:
            remaining += written
    return CommandLine(tuple(remaining), tuple(notify), index_url)


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command line as it is kept and shown: without logins and tokens."""
    redacted: list[str] = []
    for flag, value, written in _flags(words):
        if not flag:
            redacted.append(mask_login(value))
            continue
        masked = mask_notify(value) if flag == NOTIFY else mask_index(value)
        redacted += [f"{flag}={masked}"] if len(written) == 1 else [flag, masked]
    return tuple(redacted)


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield flag, value and words of each flag that may hold a secret; yield any other word as a value."""
    remaining = iter(words)
    for word in remaining:
        flag, has_value, value = word.partition("=")
        if flag not in (NOTIFY, INDEX_URL):
            yield "", word, (word,)
        elif has_value:
            yield flag, value, (word,)
        elif (following := next(remaining, None)) is not None:
            yield flag, following, (word, following)
        else:
            yield "", word, (word,)

"""Sources of packages that the user names: an index with its login, or a folder of wheels."""

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from requests.adapters import HTTPAdapter
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from orchestrator.engines.index.simple_api import Link, links
from orchestrator.errors import UsageError

TIMEOUT_S = (15, 60)
RETRIES = Retry(total=3, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False)

# The longest lists of files, those of nightly packages, take up a few megabytes.
MOST_PAGE_BYTES, CHUNK_BYTES = 32 * 2**20, 2**16


class Trouble(Exception):
    """The reason why an index did not serve, in words that reveal no more of its address than the host."""


class Upstream:
    """The index that the user named."""

    def __init__(self, url: str, ca_bundle: Path | None) -> None:
        try:
            parts = urlsplit(url)
            fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fine = False
        if not fine:
            # The message contains no part of the address, because that may contain a password.
            raise UsageError("--index-url: give an address like https://HOST/simple, with or without USER:PASSWORD@")
        if ca_bundle and not ca_bundle.is_file():
            raise UsageError(f"--ca-bundle {ca_bundle}: there is no such file")
        self.host = parts.hostname or ""
        self._auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        self._root = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self._verify = str(ca_bundle) if ca_bundle else None
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=RETRIES, pool_maxsize=16))

    def links(self, project: str) -> tuple[Link, ...]:
        """Return the files that the index offers for a project, none if it does not know the project; raise Trouble."""
        with self._get(f"{self._root}/{project}/", {"Accept": "text/html"}) as response:
            if response.status_code == HTTPStatus.NOT_FOUND:
                return ()
            self._check(response)
            try:
                return links(self._read_page(response), response.url)
            except (OSError, HTTPError) as error:
                raise Trouble(f"{self.host} was not reached: {reason(error)}") from error

    def _read_page(self, response: requests.Response) -> str:
        data = bytearray()
        # The size is checked while the page is unpacked, because a few bytes may unpack to any size.
        for chunk in response.iter_content(CHUNK_BYTES):
            data += chunk
            if len(data) > MOST_PAGE_BYTES:
                raise Trouble(f"{self.host} sent a list of more than {MOST_PAGE_BYTES / 2**20:.0f} MiB")
        try:
            return data.decode(response.encoding or "utf-8", "replace")
        except LookupError:
            return data.decode("utf-8", "replace")

    def file(self, link: Link) -> requests.Response:
        """Request a file, whose bytes are still to be read from `raw`; raise Trouble."""
        response = self._get(link.url, {"Accept-Encoding": "identity"})
        try:
            self._check(response)
        except Trouble:
            response.close()
            raise
        return response

    def _get(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        # The login is sent only to the index itself, because files may be on another host.
        auth = self._auth if urlsplit(url)[:2] == urlsplit(self._root)[:2] else None
        try:
            return self._session.get(
                url, headers=headers, auth=auth, verify=self._verify, timeout=TIMEOUT_S, stream=True
            )
        except (OSError, HTTPError) as error:
            raise Trouble(f"{self.host} was not reached: {reason(error)}") from error

    def _check(self, response: requests.Response) -> None:
        if response.status_code != HTTPStatus.OK:
            raise Trouble(f"{self.host} answered {response.status_code} {response.reason}")

    def close(self) -> None:
        self._session.close()


class Wheelhouse:
    """A folder of wheels and source packages."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UsageError(f"--wheelhouse {folder}: there is no such folder; it must hold the wheels of the locks")
        self._folder = folder
        if not any(map(project_of, self._names())):
            raise UsageError(f"--wheelhouse {folder}: there is no package in it; docs/images.md says how to fill one")

    def files(self, project: str) -> dict[Link, Path]:
        paths = [self._folder / name for name in self._names() if project_of(name) == project]
        return {Link(path.name, path.resolve().as_uri()): path for path in paths}

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir() if path.is_file())


def project_of(filename: str) -> str:
    """Return the project that a file belongs to, spelled as in indexes, or '' if the file is not a package."""
    parse = parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename
    with suppress(InvalidWheelFilename, InvalidSdistFilename):
        return str(parse(filename)[0])
    return ""


def reason(error: BaseException) -> str:
    """Return the innermost cause, since those around it only repeat addresses."""
    while True:
        wrapped = [getattr(error, "reason", None), *error.args]
        inner = next((cause for cause in wrapped if isinstance(cause, BaseException)), None)
        if inner is None:
            return (str(error) or type(error).__name__).splitlines()[0]
        error = inner

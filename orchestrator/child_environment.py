"""The variables of a program that resolves or installs packages for the user.

It runs with what the user's index needs and with nothing else: no secret of the caller may reach a package that is
looked at, and no setting (a target folder, a dry run, a constraint) may change what is installed.
"""

import os
import re
from collections.abc import Mapping

PASSED = re.compile(
    # These say where programs, the user's files and the scratch space are, and set the language of messages.
    r"PATH|HOME|TMPDIR|LANG|LANGUAGE|LC_\w+|XDG_(CONFIG_\w+|CACHE_HOME|DATA_HOME)"
    # These lead to an index: proxies, certificates and the file of logins.
    r"|(?i:HTTP|HTTPS|ALL|NO)_(?i:PROXY)|SSL_CERT_(FILE|DIR)|SSL_CLIENT_CERT|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NETRC"
    # These name the index, its login, its certificate, its cache and its timeouts, for pip and for uv.
    r"|PIP_((EXTRA_)?INDEX_URL|NO_INDEX|FIND_LINKS|TRUSTED_HOST|KEYRING_PROVIDER|CONFIG_FILE|CACHE_DIR|NO_CACHE_DIR"
    r"|CERT|CLIENT_CERT|PROXY|(DEFAULT_)?TIMEOUT|RETRIES)"
    r"|UV_((EXTRA_)?INDEX_URL|(DEFAULT_)?INDEX|INDEX_STRATEGY|INDEX_\w+_(USERNAME|PASSWORD)|FIND_LINKS"
    r"|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR|NATIVE_TLS|SYSTEM_CERTS|OFFLINE|CACHE_DIR|NO_CACHE"
    r"|(HTTP|HTTP_CONNECT|REQUEST)_TIMEOUT|HTTP_RETRIES)"
)


def pass_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the caller's variables that a program may have if it resolves or installs packages."""
    return {name: value for name, value in environment.items() if PASSED.fullmatch(name)}

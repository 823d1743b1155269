"""What a program that resolves or installs packages gets of the caller's variables, and what it does not."""

import pytest

from orchestrator.child_environment import pass_variables

SECRETS = (
    "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "DOCKER_AUTH_CONFIG", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
    "NPM_TOKEN", "OPENAI_API_KEY", "RAY_AUTH_TOKEN", "SSH_AUTH_SOCK", "TFCOMPARE_NOTIFY", "TWINE_PASSWORD",
    "UV_PUBLISH_PASSWORD", "UV_PUBLISH_TOKEN", "TF_TOKEN_EXAMPLE",
)  # fmt: skip
# What changes what is installed, where to, or which program does it.
SETTINGS = (
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_DRY_RUN", "PIP_NO_DEPS", "PIP_REQUIRE_VIRTUALENV",
    "PIP_CONSTRAINT", "PIP_REQUIREMENT", "PIP_PYTHON", "PIP_NO_BINARY", "PIP_ONLY_BINARY", "PIP_PRE", "PIP_LOG",
    "UV_TARGET", "UV_CONFIG_FILE", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_PRERELEASE", "UV_PYTHON", "UV_EXCLUDE_NEWER",
    "UV_BUILD_CONSTRAINT", "UV_SYSTEM_PYTHON", "UV_WORKING_DIR", "UV_NO_BUILD_ISOLATION",
    "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "CC", "CFLAGS", "BASH_ENV",
)  # fmt: skip
NEEDED = (
    "PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME",
    "XDG_DATA_HOME", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "NETRC",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CONFIG_FILE",
    "PIP_CACHE_DIR", "PIP_NO_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT",
    "PIP_TIMEOUT", "PIP_RETRIES", "PIP_KEYRING_PROVIDER",
    "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS",
    "UV_INDEX_STRATEGY", "UV_INDEX_OWN_USERNAME", "UV_INDEX_OWN_PASSWORD", "UV_INSECURE_HOST", "UV_KEYRING_PROVIDER",
    "UV_CREDENTIALS_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_OFFLINE", "UV_CACHE_DIR", "UV_NO_CACHE",
    "UV_HTTP_TIMEOUT", "UV_HTTP_CONNECT_TIMEOUT", "UV_HTTP_RETRIES", "UV_REQUEST_TIMEOUT",
)  # fmt: skip


def test_no_secret_and_no_setting_is_passed_on():
    assert pass_variables(dict.fromkeys((*SECRETS, *SETTINGS), "x")) == {}


def test_what_an_index_needs_is_passed_on_unchanged():
    caller = {name: f"value of {name}" for name in NEEDED}
    assert pass_variables({**caller, **dict.fromkeys(SECRETS, "x")}) == caller


def test_the_variables_of_this_process_are_those_of_the_caller(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_TOKEN", "planted")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    passed = pass_variables()
    assert passed["PIP_INDEX_URL"] == "https://index.example/simple"
    assert "planted" not in passed.values()

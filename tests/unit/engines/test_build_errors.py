"""What Docker and pip said when builds failed, word for word, and what is made of it.

Recorded with Docker 20.10 and pip 19 to 26; where nobody here could make one happen, taken from reports of others.
"""

from pathlib import Path

import pytest

from orchestrator.engines import build_errors

STEP = "The command '/bin/sh -c if [ -s /tmp/build/ca.pem ]; then ...' returned a non-zero code: 1"
BASE = "mirror.example/python:3.7-slim"

OF_BASES = {
    "base-gone": [
        f"manifest for {BASE} not found: manifest unknown: manifest unknown",
        f"pull access denied for {BASE}, repository does not exist or may require 'docker login': denied",
        "name unknown: repository name not known to registry",
    ],
    "base-digest": [
        "manifest verification failed for digest sha256:4721",
        "filesystem layer verification failed for digest sha256:4721",
        "image config verification failed for digest sha256:4721",
    ],
    "base-refused": [
        "Head https://mirror.example/v2/python/manifests/3.7-slim: unauthorized: authentication required",
        "Get https://mirror.example/v2/: no basic auth credentials",
    ],
    "registry-limit": ["toomanyrequests: You have reached your pull rate limit."],
    "base-certificate": ["Get https://mirror.example/v2/: x509: certificate signed by unknown authority"],
    "registry-names": [
        "Get https://mirror.example/v2/: dial tcp: lookup mirror.example on 10.0.0.1:53: no such host",
        "Get https://mirror.example/v2/: dial tcp: lookup mirror.example: Temporary failure in name resolution",
        "Get https://mirror.example/v2/: dial tcp: lookup mirror.example on [::1]:53: server misbehaving",
    ],
    "registry-unreachable": [
        "Get https://mirror.example/v2/: dial tcp 127.0.0.1:1: connect: connection refused",
        "Get https://mirror.example/v2/: net/http: TLS handshake timeout",
        "Get https://mirror.example/v2/: net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
        "Get https://mirror.example/v2/: EOF",
        "Get https://mirror.example/v2/: proxyconnect tcp: dial tcp 10.0.0.2:3128: connect: no route to host",
    ],
    "other-machine": ["no matching manifest for linux/arm64/v8 in the manifest list entries"],
    "no-python": [
        'OCI runtime create failed: ... exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown',
    ],
    "disk": [
        "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
        "failed to register layer: Error processing tar file(exit status 1): write /x: no space left on device",
        "write /x: disk quota exceeded",
    ],
}

OF_STEPS = {
    "hash": [
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package ...",
    ],
    "disk": [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "sh: 1: cannot create /big: No space left on device",
    ],
    "index-certificate": [
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: "
        "CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate'))'\n"
        "ERROR: Could not find a version that satisfies the requirement six==1.17.0 (from versions: none)",
        "index: mirror.example was not reached: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
        "self-signed certificate (_ssl.c:1006)\nERROR: No matching distribution found for six==1.17.0",
    ],
    "index-names": [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3."
        "connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary "
        "failure in name resolution')': /simple/six/\nERROR: No matching distribution found for six==1.17.0",
        "index: mirror.example was not reached: HTTPSConnection(host='mirror.example', port=443): Failed to resolve "
        "'mirror.example' ([Errno -2] Name or service not known)",
    ],
    "index-refused": [
        "WARNING: 401 Error, Credentials not correct for http://127.0.0.1:1/simple/six/",
        "index: mirror.example answered 403 Forbidden\nERROR: No matching distribution found for six==1.17.0",
        "ERROR: HTTP error 403 while getting https://mirror.example/six.whl",
    ],
    "index-unreachable": [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<...>: Failed to establish "
        "a new connection: [Errno 111] Connection refused')'\nERROR: No matching distribution found for six==1.17.0",
        "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(...): Read timed out.",
        "WARNING: Retrying (...) after connection broken by 'ProxyError('Cannot connect to proxy.', OSError(...))'",
        "index: mirror.example answered 503 Service Unavailable\nERROR: No matching distribution found for six==1.17.0",
        "index: the connection to mirror.example broke: IncompleteRead(5 bytes read) (six.whl)\nERROR: THESE PACKAGES "
        "DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    ],
    "index-other": [
        "index: other.example is not served here\nWARNING: ... ProxyError('Cannot connect to proxy.', ...)"
    ],
    "missing": [
        "ERROR: Could not find a version that satisfies the requirement six==1.17.0 (from versions: 1.16.0)\n"
        "ERROR: No matching distribution found for six==1.17.0",
    ],
    "source": [
        "  ERROR: Failed building wheel for h5py\nERROR: Could not build wheels for h5py, which is required to install",
    ],
    "no-python": [
        "/bin/sh: 1: python3: not found",
        "/usr/bin/python3: No module named venv",
        "/usr/bin/python3: No module named pip",
    ],
}


@pytest.mark.parametrize(("kind", "said"), [(kind, said) for kind, all in OF_BASES.items() for said in all])
def test_what_docker_says_of_a_base(kind: str, said: str):
    found = build_errors.of_image(said, "Step 1/9 : ARG BASE", base=BASE, python="3.7")
    assert found is not None
    assert found.kind == kind
    assert kind == "disk" or BASE in found.what


@pytest.mark.parametrize(("kind", "said"), [(kind, said) for kind, all in OF_STEPS.items() for said in all])
def test_what_a_step_prints(kind: str, said: str):
    found = build_errors.of_image(STEP, f"Collecting six==1.17.0\n{said}", base=BASE, python="3.7")
    assert found is not None
    assert found.kind == kind
    installed = build_errors.of_install(said, folder=Path("/cache"))
    assert installed is not None
    assert installed.kind == kind


def test_each_kind_says_something_of_its_own_and_what_to_do():
    """Those of one kind may differ in what, as a base without a shell and one without a Python do."""
    found = [build_errors.of_image(said, "", base=BASE, python="3.7") for all in OF_BASES.values() for said in all]
    found += [build_errors.of_image(STEP, said, base=BASE, python="3.7") for all in OF_STEPS.values() for said in all]
    told = {(one.what, one.kind) for one in found if one}
    assert len({what for what, _ in told}) == len(told)
    assert all(one and one.what.strip() and len(one.advice) > 20 for one in found)
    assert {one.kind for one in found if one} == {*OF_BASES, *OF_STEPS}


def test_a_digest_that_a_registry_lacks_is_not_a_name_that_it_lacks():
    pinned = f"{BASE}@sha256:4721"
    found = build_errors.of_image(f"manifest for {pinned} not found: manifest unknown", "", base=pinned, python="3.7")
    assert found is not None
    assert (found.kind, "tfcompare images lock" in found.advice) == ("base-digest", True)


def test_what_is_missing_is_told_by_name_and_from_where():
    said = "ERROR: No matching distribution found for six==1.17.0"
    index = build_errors.of_install(said, folder=Path("/cache"))
    house = build_errors.of_install(said, folder=Path("/cache"), wheelhouse=Path("wheels"))
    assert index is not None
    assert house is not None
    assert index.what == "the index has no file of six==1.17.0 for this Python"
    assert house.what == "the wheelhouse wheels has no file of six==1.17.0 for this Python"


def test_memory_that_ran_out_is_guessed_by_the_exit_code():
    found = build_errors.of_image("The command '...' returned a non-zero code: 137", "", base=BASE, python="3.7")
    assert found is not None
    assert (found.kind, "--at-once 1" in found.advice) == ("memory", True)


def test_a_base_whose_pull_went_well_is_not_blamed_for_what_a_step_says():
    """Docker's own words for a registry may stand in what pip prints, too."""
    found = build_errors.of_image(STEP, "six: dial tcp: manifest unknown", base=BASE, python="3.7")
    assert found is None


def test_what_is_not_known_is_left_as_it_was_said():
    assert build_errors.of_image("invalid reference format", "", base="No Image", python="3.7") is None
    assert build_errors.of_install("Segmentation fault", folder=Path("/cache")) is None

"""What is installed in an environment, and whether its files are still those that were installed.

It is run by path (`python .../workloads/image_inventory.py`) inside a version's image, and prints one JSON object. It
uses only the standard library and imports no package in this process, because a missing or broken package is a finding
that must not end the search for others.
"""

import base64
import csv
import email
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig

# The first few of ten thousand files that differ are enough to see why.
MOST_NAMED = 20
CHUNK_BYTES = 1 << 20
# These files run when a package is imported, or by themselves; users of a package may write other files there.
CODE = (".py", ".so", ".pth")
IMPORT = "--import"


def folders():
    """Return the folders of packages, each once, because one may be a link to the other."""
    return sorted({os.path.realpath(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")})


def normal(name):
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folder):
    """Yield (name, version, path of RECORD or None) for everything that is installed in a folder."""
    for entry in sorted(os.listdir(folder)):
        stem, kind = os.path.splitext(entry)
        if kind not in (".dist-info", ".egg-info"):
            continue
        path = os.path.join(folder, entry)
        said = _headers([os.path.join(path, "METADATA"), os.path.join(path, "PKG-INFO"), path])
        named, _, numbered = stem.partition("-")
        record = os.path.join(path, "RECORD")
        yield (
            normal(said.get("Name") or named),
            said.get("Version") or numbered,
            record if os.path.isfile(record) else None,
        )


def _headers(paths):
    for path in paths:
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as text:
                return email.message_from_file(text)
    return {}


def claims(folder, record):
    """Yield (path, sha256 or None) for every file that a RECORD names."""
    with open(record, encoding="utf-8", errors="replace", newline="") as rows:
        for row in csv.reader(rows):
            if row:
                algorithm, _, digest = (row[1] if len(row) > 1 else "").partition("=")
                yield _place(folder, row[0]), digest if algorithm == "sha256" else None


def _place(folder, name):
    path = os.path.normpath(os.path.join(folder, name))
    if name.startswith("..") and not os.path.lexists(path):
        # `pip install --target` moves programs into the folder itself, and leaves RECORD as it was.
        inside = os.path.join(folder, *[part for part in name.split("/") if part != ".."])
        if os.path.lexists(inside):
            return inside
    return path


def digest_of(path):
    """Return the digest of a file as RECORD has it."""
    found = hashlib.sha256()
    with open(path, "rb") as content:
        for chunk in iter(lambda: content.read(CHUNK_BYTES), b""):
            found.update(chunk)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode("ascii")


def check(folder, records):
    """Compare the files of a folder with its RECORDs, and return the differences."""
    wanted = {}
    for record in records:
        for path, digest in claims(folder, record):
            # Several distributions may contain the same file, which is that of the one installed last.
            wanted.setdefault(path, set()).add(digest)
    missing, changed, checked = [], [], 0
    for path, digests in sorted(wanted.items()):
        if None in digests:
            continue
        checked += 1
        try:
            if digest_of(path) not in digests:
                changed.append(path)
        except OSError:
            missing.append(path)
    return {
        "checked": checked,
        "unhashed": len(wanted) - checked,
        "missing": _named(missing, folder),
        "changed": _named(changed, folder),
        "added": _named(sorted(_code(folder) - set(wanted)), folder),
    }


def _code(folder):
    return {
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(CODE) and "__pycache__" not in parent
    }


def _named(paths, folder):
    return {"count": len(paths), "first": [os.path.relpath(path, folder) for path in paths[:MOST_NAMED]]}


def inventory(places):
    """Return everything that can be learned about an environment without importing any of it."""
    found = {"python": platform.python_version(), "distributions": {}, "unrecorded": [], "files": []}
    for folder in places:
        records = []
        for name, version, record in distributions(folder):
            found["distributions"][name] = version
            if record is None:
                found["unrecorded"].append(name)
            else:
                records.append(record)
        found["files"].append(dict(check(folder, records), folder=folder))
    return found


def imported():
    """Import the packages, and return what they report about themselves, as far as they do."""
    import numpy
    import tensorflow as tf

    said = {"numpy": numpy.__version__, "tensorflow": tf.__version__, "cuda_build": bool(tf.test.is_built_with_cuda())}
    cuda_version = _cuda_version(tf)
    if cuda_version:
        said["cuda_version"] = str(cuda_version)
    said["compute"] = _compute(tf)
    return said


def _cuda_version(tf):
    try:
        return dict(tf.sysconfig.get_build_info()).get("cuda_version")
    except AttributeError:
        pass
    try:
        # TensorFlow before 2.3 has it here.
        from tensorflow.python.platform import build_info

        return getattr(build_info, "cuda_version_number", None)
    except ImportError:
        # This TensorFlow was built in another way.
        return None


def _compute(tf):
    """Return the compute capabilities that this TensorFlow has code for, as in 8.0; [] if it does not say."""
    try:
        listed = dict(tf.sysconfig.get_build_info()).get("cuda_compute_capabilities") or []
    except AttributeError:
        return []
    # They are written as sm_80, compute_90 or 8.0.
    numbers = (re.sub(r"^(sm|compute)_(\d+)(\d)$", r"\2.\3", str(each)) for each in listed)
    return [number for number in numbers if re.match(r"^\d+\.\d$", number)]


def _leave_own_folder():
    """Remove this file's folder from the path, because its profile.py would hide that of the standard library."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def _answer_channel():
    """Return the original stdout for the answer alone; whatever TensorFlow prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _ask_import():
    """Start the import in a separate process, which TensorFlow ends on a processor that it was not built for."""
    return subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), IMPORT],
        stdout=subprocess.PIPE,
        env=dict(os.environ, CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2"),
    )


def _hear_import(process):
    answer = process.communicate()[0]
    try:
        return json.loads(answer.decode("utf-8"))
    except ValueError:
        code = process.returncode
        return {"error": f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"}


def main(argv):
    _leave_own_folder()
    answers = _answer_channel()
    if argv == [IMPORT]:
        try:
            found = imported()
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
    else:
        # Both are slow, so files are read while TensorFlow is imported.
        importing = _ask_import()
        found = inventory(folders())
        found["imported"] = _hear_import(importing)
    answers.write(json.dumps(found, sort_keys=True) + "\n")
    answers.close()


if __name__ == "__main__":
    main(sys.argv[1:])

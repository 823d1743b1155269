"""What is installed in an environment, and whether its files are still those that were installed.

Run by path (`python .../workloads/image_inventory.py`) inside a version's image; prints one JSON object. Standard
library only, and no import of a package in this process: one that is missing or broken is a finding, and must not end
the search for others.
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

# Of ten thousand files that differ the first few tell why.
MOST_NAMED = 20
CHUNK_BYTES = 1 << 20
# What runs when a package is imported, or by itself; the rest may be written by the users of a package.
CODE = (".py", ".so", ".pth")
IMPORT = "--import"


def folders():
    """Where packages are installed, each once: one may be a link to the other."""
    return sorted({os.path.realpath(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")})


def normal(name):
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folder):
    """(name, version, RECORD's path or None) of everything that is installed in a folder."""
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
    """(path, sha256 or None) of every file that a RECORD names."""
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
    """As RECORD writes it."""
    found = hashlib.sha256()
    with open(path, "rb") as content:
        for chunk in iter(lambda: content.read(CHUNK_BYTES), b""):
            found.update(chunk)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode("ascii")


def check(folder, records):
    """What became of the files that the RECORDs of a folder name."""
    wanted = {}
    for record in records:
        for path, digest in claims(folder, record):
            # Several distributions may bring one file: the last that was installed has written it.
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
    """Everything that can be learned about an environment without importing any of it."""
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
    """What the packages say of themselves. What has no answer is left out."""
    import numpy
    import tensorflow as tf

    said = {"numpy": numpy.__version__, "tensorflow": tf.__version__, "cuda_build": bool(tf.test.is_built_with_cuda())}
    cuda_version = _cuda_version(tf)
    if cuda_version:
        said["cuda_version"] = str(cuda_version)
    return said


def _cuda_version(tf):
    try:
        return dict(tf.sysconfig.get_build_info()).get("cuda_version")
    except AttributeError:
        pass
    try:
        # Before 2.3.
        from tensorflow.python.platform import build_info

        return getattr(build_info, "cuda_version_number", None)
    except ImportError:
        # A TensorFlow that was built in another way.
        return None


def _leave_own_folder():
    """This file's folder is no place to import from: it has a profile.py, and so has the standard library."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def _answer_channel():
    """TensorFlow prints on stdout too: the answer has the original to itself, the rest goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _ask_import():
    """A separate process: TensorFlow on a processor that it was not built for ends the one that imports it."""
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
        # Both take their time: files are read while TensorFlow is imported.
        importing = _ask_import()
        found = inventory(folders())
        found["imported"] = _hear_import(importing)
    answers.write(json.dumps(found, sort_keys=True) + "\n")
    answers.close()


if __name__ == "__main__":
    main(sys.argv[1:])

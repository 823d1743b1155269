"""docs/versions.md: the table of versions, and which of them were actually run."""

import json

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog.version import Build, Flavour, Version
from tools.docs import WRITTEN

RECORD = IMAGES / "verified.json"

HEAD = """# Versions

{written}

`--versions` accepts every minor release below by its short name, and the patches that are listed. `2.8..2.13` is a
range of releases, `all` means all of them, and the first of a list is the baseline. An exact patch that is not here
(`2.3.1`) and a nightly (`nightly`, `nightly-20260901`) are resolved and locked on first use into your own folder,
`~/.local/share/tfcompare`. Your own versions also go there, into `versions.toml`, in the form of
`images/versions.toml`. Each needs a lock, which `python tools/lock.py VERSION` in a clone of this repository writes.

Every flavour has a lock with the hashes of everything that is installed. If a release sets no upper bound for Keras,
protobuf or numpy, the table sets one: the version that was current in the month of that release.

## On the CPU

`make verify-versions` ran each of them in a virtual environment: it built the environment from its lock, imported
TensorFlow, trained a model, and measured the cases of the smoke suite; `measured` counts those that this version can
run. The flavours of one version differ by Python only; images use the first.

| version | goes by | Keras | Python | run | measured | refused |
|---|---|---|---|---|---|---|
"""

GPU_HEAD = """
## On a GPU

The locks are made and hashed like the others. **Only 2.18 and 2.21 were run on a GPU**, with
[different CUDA libraries](gpu.md#seen-on-a-real-gpu). From 2.3 on, the wheel itself says what it was built for; before
that, the release's build scripts do. A base without a digest has not been verified yet; `tfcompare images lock` asks
its registry. Where the CUDA libraries are packages, the base is plain Python, and the version also runs in virtual
environments.

| version | package | Python | base | digest | CUDA | cuDNN | libraries | holds code for | driver |
|---|---|---|---|---|---|---|---|---|---|
"""

BUILDS_HEAD = """
## NVIDIA's builds

These are not the releases: NVIDIA adds patches and uses different libraries and defaults, so a ratio to one of these
is not a ratio to the release. They run on GPUs on which the wheels of the same age fail. Each is an image that is used
as it is, on Docker only, and reports name it by its full number. NVIDIA's release notes and public build files say what
is in them; tfcompare has not run them yet. A digest that is given here was found in public build files.

| version | goes by | image | digest | CUDA | cuDNN | holds code for | driver |
|---|---|---|---|---|---|---|---|
"""


def versions_page() -> str:
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    versions = [version for version in catalog.all_versions() if version.number in catalog.builtin_catalogue().version]
    lines = [HEAD.replace("{written}", WRITTEN).rstrip("\n")]
    lines += [_cpu(version, flavour, record) for version in versions for flavour in version.on("cpu")]
    lines.append(GPU_HEAD.rstrip("\n"))
    lines += [_gpu(version, flavour) for version in versions for flavour in version.on("gpu")]
    lines += [BUILDS_HEAD.rstrip("\n"), *(_build(version, version.build) for version in versions if version.build)]
    if notes := [f"- {version.number}: {note}" for version in versions for note in version.notes]:
        lines += ["", "## Known to be bad", "", *notes]
    return "\n".join(lines) + "\n"


def _cpu(version: Version, flavour: Flavour, record: dict) -> str:
    result = record.get(f"{version.number} cpu py{flavour.python.number}")
    run, measured, refused = "not run", "", ""
    if result and result["lock"] != catalog.lock_hash(flavour):
        run = f"not since its lock was changed (last {result['day']})"
    elif result:
        run = result["day"] if result["ok"] else f"{result['day']}, **failed**: {result.get('said', '')}"
        measured, refused = str(result.get("measured", "")), str(result.get("refused", ""))
    name = ", ".join(f"`{alias}`" for alias in version.aliases)
    first = flavour is version.on("cpu")[0]
    cells = (version.number, name, version.keras) if first else ("", "", "")
    return "| " + " | ".join((*cells, flavour.python.number, run, measured, refused)) + " |"


def _gpu(version: Version, flavour: Flavour) -> str:
    assert flavour.cuda is not None
    package = flavour.requirements[0].partition("==")[0]
    digest = f"`{flavour.digest[:19]}`" if flavour.digest else "none"
    cells = (
        version.number, f"`{package}`", flavour.python.number, f"`{flavour.image}`", digest, flavour.cuda.number,
        flavour.cuda.cudnn or "", _libraries(flavour), " ".join(flavour.cuda.compute), flavour.cuda.driver,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _libraries(flavour: Flavour) -> str:
    """Return where CUDA's libraries come from: the base, or packages of the lock, with their CUDA if it differs."""
    assert flavour.cuda is not None
    if flavour.image != flavour.python.image:
        return "of the base"
    return "packages" if flavour.cuda.libraries == flavour.cuda.number else f"packages of {flavour.cuda.libraries}"


def _build(version: Version, build: Build) -> str:
    image, _, digest = build.image.partition("@")
    cells = (
        version.number, ", ".join(f"`{alias}`" for alias in version.aliases), f"`{image}`",
        f"`{digest[:19]}`" if digest else "none", build.cuda.number, build.cuda.cudnn or "",
        " ".join(build.cuda.compute), build.cuda.driver,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"

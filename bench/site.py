"""The cost of a site with two years of nights: built by `tfcompare`, and by asv's `publish` from the same times.

tfcompare builds it from a real history folder. A browser counts what each page loads, from the first request to the
last.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

from bench.figures import Figure, Section
from orchestrator.exports.asv import BENCHMARKS_FORMAT, COLUMNS, MACHINE_FORMAT, RESULTS_FORMAT
from orchestrator.history.model import Point
from orchestrator.history.site import wording
from orchestrator.history.store import Store
from tests.support.nights import history, labels

NIGHTS, CASES = 730, 200
BUILD_S, LARGEST_MB = 10.0, 1.0
REPEATS = 3
# The noise hides a step up, a smaller step that is undone later, and a jump.
STEPS = {
    (labels(CASES)[0], "2.13.0"): {500: 1.1},
    (labels(CASES)[1], "2.0.0"): {300: 1.05, 450: 1 / 1.05},
    (labels(CASES)[3], "2.13.0"): {200: 1.5},
}
SHOWN = labels(CASES)[0]
BUILD = (
    "import pathlib, sys; from orchestrator.history import site; from orchestrator.history.store import Store; "
    "site.build_site(Store(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]))"
)
# asv's pages fetch these libraries from elsewhere. The releases are those that they name, if npm has them.
LIBRARIES = (
    "jquery@3.3.1", "flot@0.8.3", "flot-orderbars@1.0.0", "stupid-table-plugin@1.1.3", "blueimp-md5@2.19.0",
    "bootstrap@3.1.1",
)  # fmt: skip
FETCHED = re.compile(r'(src|href)="https://[^"]*/([^"/]+)" integrity="[^"]*"')
MACHINE, TIMED = "bench", "cases.time_"
DOCS = Path(__file__).resolve().parent.parent / "docs"
SETTLE_S, WAIT_S = 2.0, 60.0


@dataclass(frozen=True)
class Load:
    """The data that a browser fetched until nothing more came, and the time that it took."""

    bytes: int
    requests: int
    seconds: float


@dataclass(frozen=True)
class Site:
    folder: Path
    seconds: float

    @cached_property
    def sizes(self) -> list[int]:
        return [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]


def section(nights: int = NIGHTS) -> Section:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        points = history(nights, CASES, steps=STEPS)
        store = Store(folder / "history")
        for _, night in groupby(points, key=lambda point: point.night):
            store.append(list(night))
        own = _own(store, folder / "site")
        peer = _asv(points, folder / "asv")
        pages = {"overview": "index.html", "case": wording.page_of(SHOWN)}
        theirs = {"overview": "index.html#/", "case": f"index.html#{TIMED}{labels(CASES).index(SHOWN)}"}
        loads = {name: _load(own.folder, page) for name, page in pages.items()}
        peer_loads = {name: _load(peer.folder, page) for name, page in theirs.items()}
        _picture(own.folder, pages["case"], DOCS / "site.png")
        _picture(peer.folder, theirs["case"], DOCS / "site-asv.png")
        largest, their_largest = max(own.sizes), max(peer.sizes)
    body = f"""A synthetic history: {nights} nights of {CASES} cases in 2 versions and the control arm, {len(points):,}
points in {nights} files. `tfcompare history site` reads these files, looks for steps in every series and writes one
page per case; asv {_version()} gets the same times, one commit per night and one result file per version, and runs
`asv publish`, which reads them, looks for steps in every series on all cores and writes one file of figures per series.
Both run in fresh processes; the times are the best of {REPEATS}. Loads are those of a headless browser with an empty
cache, from a server on this machine, which also serves the libraries that asv's pages fetch from elsewhere.

| | `history site` | `asv publish` |
|---|---:|---:|
| build | {own.seconds:.1f} s | {peer.seconds:.1f} s |
| whole site | {_whole(own)} | {_whole(peer)} |
| largest file | {largest / 1e6:.2f} MB | {their_largest / 1e6:.2f} MB |
| overview, loaded | {_format_load(loads["overview"])} | {_format_load(peer_loads["overview"])} |
| a case, loaded | {_format_load(loads["case"])} | {_format_load(peer_loads["case"])} |
| opens from a file, without a server | yes | no |
| opens without the network | yes | no |
| readable without JavaScript | yes | no |"""
    figures = [
        Figure("build of the site", own.seconds, "s", limit=BUILD_S),
        Figure("largest file", largest / 1e6, "MB", limit=LARGEST_MB),
        Figure("whole site", sum(own.sizes) / 1e6, "MB"),
    ]
    return Section(body, figures)


def _whole(site: Site) -> str:
    return f"{sum(site.sizes) / 1e6:.1f} MB in {len(site.sizes)} files"


def _format_load(load: Load) -> str:
    return f"{load.bytes / 1e6:.2f} MB, {load.requests} request{'s' if load.requests > 1 else ''}, {load.seconds:.1f} s"


def _own(store: Store, out: Path) -> Site:
    best = min(_timed([sys.executable, "-c", BUILD, str(store.path), str(out)], out, out) for _ in range(REPEATS))
    return Site(out, best)


def _timed(command: Sequence[str], out: Path, cwd: Path) -> float:
    shutil.rmtree(out, ignore_errors=True)
    cwd.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent)}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return time.perf_counter() - begun


def _version() -> str:
    done = subprocess.run([sys.executable, "-m", "asv", "--version"], check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


def _asv(points: Sequence[Point], project: Path) -> Site:
    (project / "results" / MACHINE).mkdir(parents=True)
    conf = {
        "version": 1, "project": "nights", "repo": ".", "branches": ["nights"], "environment_type": "existing",
        "results_dir": "results", "html_dir": "html", "show_commit_url": "#",
    }  # fmt: skip
    (project / "asv.conf.json").write_text(json.dumps(conf))
    nights = sorted({point.started for point in points})
    commits = dict(zip(nights, _commits(project, nights), strict=True))
    names = {case: f"{TIMED}{number}" for number, case in enumerate(labels(CASES))}
    listed = {
        name: {
            "name": name, "code": case, "params": [], "param_names": [], "type": "time", "unit": "seconds",
            "timeout": 600.0, "version": "made", "pretty_name": case,
        }
        for case, name in names.items()
    }  # fmt: skip
    results = project / "results"
    (results / "benchmarks.json").write_text(json.dumps({**listed, "version": BENCHMARKS_FORMAT}))
    machine = {"machine": MACHINE, "os": "", "arch": "", "cpu": "", "num_cpu": "", "ram": ""}
    (results / MACHINE / "machine.json").write_text(json.dumps({**machine, "version": MACHINE_FORMAT}))
    by_file: dict[tuple[datetime, str], list[Point]] = defaultdict(list)
    for point in points:
        by_file[point.started, point.target].append(point)
    for (started, version), found in by_file.items():
        result = {
            "commit_hash": commits[started],
            "env_name": f"tensorflow-{version}",
            "date": int(started.timestamp() * 1000),
            "params": {**machine, "python": "3.11", "tensorflow": version},
            "python": "3.11",
            "requirements": {"tensorflow": version},
            "env_vars": {},
            "result_columns": list(COLUMNS),
            "results": {names[point.case]: _row(point) for point in found},
            "durations": {},
            "version": RESULTS_FORMAT,
        }
        path = results / MACHINE / f"{commits[started][:8]}-{version}.json"
        path.write_text(json.dumps(result))
    command = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    best = min(_timed(command, project / "html", project) for _ in range(REPEATS))
    # The sizes are cached here, as asv leaves the site, before the libraries are added.
    published = Site(project / "html", best)
    assert published.sizes
    _complete(published.folder, project / "libraries")
    return published


def _complete(html: Path, scratch: Path) -> None:
    """Put the libraries next to the pages.

    The pages show nothing at all without them, and the place that they are fetched from cannot be reached here.
    """
    scratch.mkdir()
    files: dict[str, Path] = {}
    for name in LIBRARIES:
        packed = subprocess.run(
            ["npm", "pack", "--silent", name], cwd=scratch, check=True, capture_output=True, text=True
        ).stdout.strip()
        with tarfile.open(scratch / packed) as archive:
            archive.extractall(scratch / name, filter="data")
        inside = [path for path in (scratch / name).rglob("*") if path.suffix in (".js", ".css")]
        # A package also contains its sources, and the later packages bring an old copy of the first one.
        for path in sorted(inside, key=lambda path: ("dist" not in path.parts, ".min." not in path.name)):
            files.setdefault(_plain(path.name), path)
    index = (html / "index.html").read_text()
    for _, name in FETCHED.findall(index):
        found = files.get(_plain(name))
        if found is None:
            raise SystemExit(f"asv's pages want {name}, and none of {', '.join(LIBRARIES)} has it")
        shutil.copy(found, html / name)
    (html / "index.html").write_text(FETCHED.sub(r'\1="\2"', index))


def _plain(name: str) -> str:
    """Return a file's name without its release number and without `.min`."""
    return re.sub(r"(-[0-9.]*[0-9])?(\.min)?(?=\.\w+$)", "", name.lower())


def _row(point: Point) -> list[object]:
    """Return a time as asv records it: in seconds, with a 99 % interval."""
    assert point.target_figure is not None
    assert point.error is not None
    seconds, wide = point.target_figure / 1e3, exp(3.25 * point.error)
    known = {
        "result": [seconds], "params": [], "version": "made", "started_at": int(point.started.timestamp() * 1000),
        "stats_ci_99_a": [seconds / wide], "stats_ci_99_b": [seconds * wide], "stats_q_25": [seconds],
        "stats_q_75": [seconds], "stats_number": [1], "stats_repeat": [point.rounds],
    }  # fmt: skip
    return [known.get(name) for name in COLUMNS]


def _commits(project: Path, nights: Sequence[datetime]) -> list[str]:
    """Create one empty commit per night, the oldest first."""
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    stream = "".join(
        f"commit refs/heads/nights\nmark :{number}\ncommitter bench <bench@localhost> {int(night.timestamp())} +0000\n"
        f"data 5\nnight\n" + (f"from :{number - 1}\n" if number > 1 else "")
        for number, night in enumerate(nights, 1)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=project, check=True, input=stream, text=True)
    listed = ["git", "rev-list", "--reverse", "nights"]
    return subprocess.run(listed, cwd=project, check=True, capture_output=True, text=True).stdout.split()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _browser() -> Iterator[WebDriver]:
    binary, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not binary or not driver:
        raise SystemExit("no chromium and chromedriver on PATH; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_window_size(1100, 800)
    try:
        yield browser
    finally:
        browser.quit()


def _load(folder: Path, page: str) -> Load:
    with _served(folder) as address, _browser() as browser:
        browser.get(address + page)
        return _wait_for_load(browser)


def _wait_for_load(browser: WebDriver) -> Load:
    """Return the load once nothing has come for a while."""
    size, requests, first, last = 0, 0, 0.0, 0.0
    quiet = time.monotonic()
    begun = quiet
    while time.monotonic() - quiet < SETTLE_S and time.monotonic() - begun < WAIT_S:
        for entry in browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                first = first or message["params"]["timestamp"]
            elif message["method"] == "Network.loadingFinished":
                size += int(message["params"]["encodedDataLength"])
                requests += 1
                last = message["params"]["timestamp"]
                quiet = time.monotonic()
        time.sleep(0.1)
    return Load(size, requests, last - first)


def _picture(folder: Path, page: str, file: Path) -> None:
    with _served(folder) as address, _browser() as browser:
        browser.get(address + page)
        _wait_for_load(browser)
        browser.save_screenshot(str(file))

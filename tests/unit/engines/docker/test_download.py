"""How far a download is, in one line."""

from orchestrator.engines.docker.image import Download


def step(layer: str, current: int, total: int, status: str = "Downloading") -> dict[str, object]:
    return {"id": layer, "status": status, "progressDetail": {"current": current, "total": total}}


def test_all_layers_count_together_and_the_line_comes_at_most_every_half_second():
    now = [0.0]
    download = Download(lambda: now[0])
    assert download.update(step("a", 0, 40_000_000)) == ""
    now[0] = 2.0
    assert download.update(step("a", 10_000_000, 40_000_000)) == "downloading: 10 of 40 MB, 5.0 MB/s"
    now[0] = 2.2
    assert download.update(step("b", 10_000_000, 60_000_000)) == ""
    now[0] = 4.0
    assert download.update(step("b", 30_000_000, 60_000_000)) == "downloading: 40 of 100 MB, 10.0 MB/s"


def test_what_is_no_download_shows_nothing():
    download = Download(lambda: 9.0)
    for other in (
        {"status": "Pulling from x"},
        step("a", 1, 2, "Extracting"),
        {"stream": "Step 1"},
        {"progressDetail": {}},
    ):
        assert download.update(other) == ""

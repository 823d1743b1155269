"""Each flag's text has one meaning, or is refused by the flag's name with an example."""

import pytest

from orchestrator import redact
from orchestrator.cli import parse
from orchestrator.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("10 m", 600),
        ("1h", 3600),
        ("1.5m", 90),
        ("0.5s", 0.5),
        (" 2h ", 7200),
        ("1m30s", 90),
        ("1h 30min", 5400),
        ("10 minutes", 600),
        ("2hours", 7200),
    ],
)
def test_a_duration_is_what_people_type(text: str, seconds: float):
    assert parse.seconds("--budget", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "ten", "-5s", "1e3", "5d", "1m30", "0", "0.0h", "inf", "nan", "10 moons"])
def test_what_is_no_duration_is_refused_by_its_flag(text: str):
    with pytest.raises(UsageError, match=r"--budget .* is not a duration; write e\.g\. 90s, 10m or 1h30m"):
        parse.seconds("--budget", text)


@pytest.mark.parametrize("text", ["10", " 10 ", "1.5"])
def test_a_number_without_a_unit_is_refused_with_both_that_it_may_mean(text: str):
    number = text.strip()
    with pytest.raises(UsageError) as caught:
        parse.seconds("--budget", text)
    assert str(caught.value) == f"--budget '{number}' has no unit: write {number}m for minutes or {number}s for seconds"


def test_threads_are_inter_and_intra():
    assert parse.threads("1,2") == (1, 2)
    assert parse.threads("0,0") == (0, 0)
    assert parse.threads("4") == (4, 4)
    assert parse.threads("1, 2") == (1, 2)


@pytest.mark.parametrize(("text", "share"), [("5", 0.05), ("2.5%", 0.025), (" 10 % ", 0.1)])
def test_a_margin_is_a_percentage(text: str, share: float):
    assert parse.margin(text) == (pytest.approx(share), {})


@pytest.mark.parametrize(
    ("text", "margins"),
    [
        ("leak=4KiB", (0.05, {"leak": 4096})),
        ("2%,leak=700,memory=10%", (0.02, {"leak": 700, "memory": 0.1})),
        ("traces=2, traces_per_call=0.5", (0.05, {"traces": 2, "traces_per_call": 0.5})),
        ("time=3%", (0.03, {})),
    ],
)
def test_a_metric_has_a_margin_in_its_own_unit(text: str, margins: tuple[float, dict[str, float]]):
    assert parse.margin(text) == margins


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("leak=5%", "leak needs an amount such as 4KiB"),
        ("leak=0", "leak needs an amount such as 4KiB"),
        ("leak=", "leak needs an amount such as 4KiB"),
        ("memory=4KiB", "memory needs a percentage between 0 and 100"),
        ("5%,memory=100%", "memory needs a percentage between 0 and 100"),
        ("colour=5", "no metric 'colour' has a margin; these have one: time, first,"),
        ("output=5", "no metric 'output' has a margin"),
    ],
)
def test_a_margin_in_another_unit_is_refused(text: str, told: str):
    with pytest.raises(UsageError) as refused:
        parse.margin(text)
    assert f"--margin {text!r}" in str(refused.value)
    assert told in str(refused.value)


@pytest.mark.parametrize("text", ["", "%", "0", "100", "-1", "five", "5%%"])
def test_what_is_no_margin_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--margin .*: expected a percentage between 0 and 100"):
        parse.margin(text)


@pytest.mark.parametrize("text", ["", "1,2,3", "a,b", "-1,2", "1.5,2", "1,99999", "2,"])
def test_what_are_no_numbers_are_no_threads(text: str):
    with pytest.raises(UsageError, match=r"--threads .*: expected a number up to 1024 or two \(inter-op,intra-op\)"):
        parse.threads(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1.14,2.0", ("1.14", "2.0")),
        (" 1.14 , 2.0, ", ("1.14", "2.0")),
        ("1.14 2.0", ("1.14", "2.0")),
        (",", ()),
        ("", ()),
    ],
)
def test_names_are_cut_at_commas_and_blanks(text: str, names: tuple[str, ...]):
    assert parse.parse_names(text) == names


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", (0,)), ("0,2-3", (0, 2, 3)), ("1-1", (1,)), (" 3 , 1 ", (1, 3)), ("0-2,1", (0, 1, 2))]
)
def test_cpus_are_numbers_and_ranges_each_once(text: str, cpus: tuple[int, ...]):
    assert parse.cpus(text) == cpus


@pytest.mark.parametrize("text", ["", ",", "a", "1-", "-1", "3-1", "1.5", "0-99999"])
def test_what_names_no_cpus_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--cpuset .*: expected CPU numbers and ranges, e\.g\. 0,2-3"):
        parse.cpus(text)


@pytest.mark.parametrize(
    ("text", "size"), [("900m", 900), ("4g", 4096), ("1.5G", 1536), ("2gb", 2048), ("512MB", 512), ("4GiB", 4096)]
)
def test_memory_is_a_number_and_a_unit(text: str, size: int):
    assert parse.memory_mb(text) == size


@pytest.mark.parametrize("text", ["1048577g", "9" * 400 + "GiB"])
def test_more_memory_than_any_machine_has_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--memory '\d+.*': at most 1024 TiB") as refused:
        parse.memory_mb(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["", "4", "g", "-1g", "4k", "1e3m"])
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--memory .*: expected a size, e\.g\. 900m, 4g or 4GiB"):
        parse.memory_mb(text)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("run", "--versions", "1.14,2.0"), ("run", "--versions", "1.14,2.0")),
        (("--index-url", "https://u:p%40w@h:8080/t0ken/simple"), ("--index-url", "https://****@h:8080/...")),
        (("--index-url=https://u:p@h/simple?key=1", "run"), ("--index-url=https://****@h/...", "run")),
        (("--base", "https://u:p@ss@h/x"), ("--base", "https://****@h/x")),
    ],
)
def test_a_command_line_is_kept_without_its_logins(words: tuple[str, ...], kept: tuple[str, ...]):
    assert redact.redact_words(words) == kept

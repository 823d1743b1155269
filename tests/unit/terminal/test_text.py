"""Names with numbers in them are sorted as people count, and logs hold nothing that a terminal obeys."""

import pytest

from orchestrator.terminal.text import LogCleaner, clean_log, natural_key


def test_numbers_in_names_are_sorted_as_numbers():
    names = ["power[size=11]", "power[size=2]", "power", "power[size=1]", "2.13.0", "2.2.3"]
    assert sorted(names, key=natural_key) == [
        "2.2.3", "2.13.0", "power", "power[size=1]", "power[size=2]", "power[size=11]",
    ]  # fmt: skip


PRINTED = {
    "text": ("caf\u00e9\t1\n\n2\n", "caf\u00e9\t1\n\n2\n"),
    "title": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "clipboard": ("\x1b]52;c;bHM=\x1b\\", "\\x1b]52;c;bHM=\\x1b\\"),
    "one byte": ("\x9b31m \x9d0;a\x9c", "\\x9b31m \\x9d0;a\\x9c"),
    "direction": ("a\u202eb", "a\\u202eb"),
    "colour": ("\x1b[1;31mred\x1b[0m \x1b[38:5:1m", "red "),
    "line ends": ("a\r\nb\r\r\nc", "a\nb\nc"),
    "progress": ("1/2\b\b\b2/2\r3/3\n", "1/2\n2/2\n3/3\n"),
    "colour without end": ("\x1b[" + "1" * 99 + "m", "\\x1b[" + "1" * 99 + "m"),
}


@pytest.mark.parametrize(("printed", "cleaned"), PRINTED.values(), ids=PRINTED)
def test_a_log_keeps_text_and_nothing_that_a_terminal_obeys(printed: str, cleaned: str):
    assert clean_log(printed) == cleaned
    assert clean_log(cleaned) == cleaned
    data = printed.encode()
    for cut in range(len(data) + 1):
        cleaner = LogCleaner()
        parts = cleaner.clean(data[:cut]), cleaner.clean(data[cut:]), cleaner.clean(b"", final=True)
        assert b"".join(parts).decode() == cleaned, cut


def test_what_is_held_back_for_the_next_chunk_is_little():
    cleaner = LogCleaner()
    for chunk in (b"\r" * 10**6, b"\x1b[" + b"1" * 10**6, b"\x1b" * 10**6):
        cleaner.clean(chunk)
        assert len(cleaner.clean(b"x")) < 200

"""Messages of every command are one line, shown as they are, and name the nearest word."""

from tests.support.commands import called


def test_an_escape_in_a_message_is_shown_and_not_obeyed(monkeypatch, capsys):
    assert called(monkeypatch, "report", "\x1b[2J") == 2
    assert capsys.readouterr().err.startswith("tfcompare: \\x1b[2J holds no run")


def test_a_mistyped_command_is_told_the_nearest(monkeypatch, capsys):
    assert called(monkeypatch, "imagse") == 2
    assert "Did you mean 'images'?" in capsys.readouterr().err

"""The sections of a message, in the three formats that services accept. Pure."""

import re
import shlex
from dataclasses import dataclass
from html import escape

from orchestrator.terminal.text import clip, escape_unprintable

WIDTH = 78
LONGEST = 300


@dataclass(frozen=True)
class Code:
    """Text that tfcompare did not write itself: it is shown as it is, never as markup."""

    text: str

    @property
    def display_text(self) -> str:
        return clip(escape_unprintable(self.text).strip(), LONGEST)


@dataclass(frozen=True)
class Command:
    """A command to type, shown in full; `label` says what it is for."""

    label: str
    text: str

    @property
    def display_text(self) -> str:
        return escape_unprintable(self.text)


Words = tuple[str | Code, ...]


@dataclass(frozen=True)
class MessageSection:
    head: Words
    lines: tuple[Words | Command, ...] = ()


def section_as_text(section: MessageSection) -> str:
    lines = _wrap(_join_words(section.head), "", "  ")
    for line in section.lines:
        if not isinstance(line, Command):
            lines += _wrap(_join_words(line), "  ", "    ")
        elif len(text := f"  {line.label}: {line.display_text}") <= WIDTH:
            lines.append(text)
        else:
            lines += [f"  {line.label}:", *_break_command(line.display_text)]
    return "\n".join(lines)


def _join_words(words: Words) -> str:
    return "".join(word.display_text if isinstance(word, Code) else word for word in words)


def _wrap(text: str, first: str, rest: str) -> list[str]:
    """Wrap text at spaces and after commas.

    A case with all its parameters is longer than a line.
    """
    lines = [first]
    for piece in re.split(r"(?<= )|(?<=,)(?=\S)", text):
        if len(lines[-1] + piece.rstrip()) > WIDTH and lines[-1].strip():
            lines.append(rest)
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _break_command(command: str) -> list[str]:
    """Continue a shell command over several lines, so that no mail program breaks it elsewhere.

    A flag stays on the same line as its value.
    """
    try:
        words = [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:
        words = [command]
    pieces: list[str] = []
    for word in words:
        if pieces and re.fullmatch(r"--[\w-]+", pieces[-1]) and not word.startswith("--"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    lines = [f"    {pieces[0]}"]
    for piece in pieces[1:]:
        if len(f"{lines[-1]} {piece} \\") > WIDTH:
            lines[-1] += " \\"
            lines.append(f"      {piece}")
        else:
            lines[-1] += f" {piece}"
    return lines


def as_html(section: MessageSection) -> str:
    def inline(words: Words) -> str:
        return "".join(
            f"<code>{escape(word.display_text, quote=False)}</code>"
            if isinstance(word, Code)
            else escape(word, quote=False)
            for word in words
        )

    def item(line: Words | Command) -> str:
        if isinstance(line, Command):
            return f"<li>{escape(line.label, quote=False)}: <code>{escape(line.display_text, quote=False)}</code></li>"
        return f"<li>{inline(line)}</li>"

    items = "\n".join(map(item, section.lines))
    return f"<p><b>{inline(section.head)}</b></p>" + (f"\n<ul>\n{items}\n</ul>" if items else "")


def as_markdown(section: MessageSection) -> str:
    def code(text: str) -> str:
        # Chats have no way to write a backtick between backticks.
        return "`{}`".format(text.replace("`", "'")) if text else ""

    def inline(words: Words) -> str:
        return "".join(code(word.display_text) if isinstance(word, Code) else word for word in words)

    def item(line: Words | Command) -> str:
        return f"- {line.label}: {code(line.display_text)}" if isinstance(line, Command) else f"- {inline(line)}"

    return "\n".join((f"**{inline(section.head)}**", *map(item, section.lines)))

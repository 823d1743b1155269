"""The pages for users, and the commands in them."""

import re
import shlex

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# In a block of code, or between backticks.
COMMAND = re.compile(r"(?:^ {4}|^|`)(?:\S*\.venv/bin/)?tfcompare ([^`\n]*)", re.MULTILINE)
# One without a language is what a command printed.
FENCED = re.compile(r"^```(?P<language>\w*)\n.*?^```$", re.MULTILINE | re.DOTALL)
OPERATORS = {"|", "||", "&&", ";", ">", ">>", "<", "&", "2", "#"}


def cut(line: str) -> list[str]:
    """The words of a command, without a comment and what a shell does with its output."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words = []
    try:
        for word in lexer:
            if word in OPERATORS:
                break
            words.append(word)
    except ValueError:
        return []
    return words


def printed_blocks(page: str) -> list[str]:
    """The blocks of a page's text without a language, indented ones included."""
    plain = FENCED.sub(lambda block: "" if block["language"] else block[0], page)
    indented = re.findall(r"(?<=\n\n)(?:(?: {4}.*)?\n)*? {4}.*\n(?:(?: {4}.*)?\n)*", FENCED.sub("", plain))
    fenced = [block[0].split("\n", 1)[1].removesuffix("```") for block in FENCED.finditer(plain)]
    return [*fenced, *(re.sub("^ {4}", "", each, flags=re.MULTILINE).strip("\n") + "\n" for each in indented)]


def is_part(block: str, printed: str) -> bool:
    """Return whether lines were printed like this, one after another; a line of dots is any number of lines."""
    lines = [r"(?:.*\n)+?" if line.strip() == "..." else re.escape(line) + r" *\n" for line in block.splitlines()]
    return re.search("^" + "".join(lines), printed + "\n", re.MULTILINE) is not None

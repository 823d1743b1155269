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

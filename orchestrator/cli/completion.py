"""The `tfcompare completion` command: a script for a shell, which calls the same command for every Tab."""

import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from orchestrator.cli import parse
from orchestrator.cli.candidates import SHELLS, Candidate, complete_words

app = typer.Typer()

BASH = r"""
_tfcompare() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
        tfcompare completion bash -- "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null
    )
}
complete -o default -o nospace -F _tfcompare tfcompare
"""
ZSH = r"""
_tfcompare() {
    local word
    local -a whole parts
    for word in "${(@f)$(tfcompare completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ $word == *' ' ]]; then whole+=("${word% }"); elif [[ -n $word ]]; then parts+=("$word"); fi
    done
    if (( ${#whole} + ${#parts} )); then
        (( ${#whole} )) && compadd -a whole
        (( ${#parts} )) && compadd -S '' -a parts
    else
        _files
    fi
}
compdef _tfcompare tfcompare
"""
FISH = r"""
function __tfcompare
    set -l words (commandline -opc)
    set -l found (tfcompare completion fish -- $words[2..] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command tfcompare --no-files --arguments '(__tfcompare)'
"""
SCRIPTS = dict(zip(SHELLS, (BASH, ZSH, FISH), strict=True))
# Bash begins a new word at these characters, although they are not blanks.
BREAKS = "=:"


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL", show_default=False)],
) -> None:
    """Print a shell script that completes commands, flags, versions, cases, runs and claims.

    [bold]Examples[/bold]

      source <(tfcompare completion bash)      in ~/.bashrc

      source <(tfcompare completion zsh)       in ~/.zshrc, after compinit

      tfcompare completion fish | source       in ~/.config/fish/config.fish
    """
    parse.one_of("SHELL", "shell", shell, SHELLS)
    print(SCRIPTS[shell].strip())


def complete(root: Any, shell: str, words: Sequence[str]) -> None:
    """Print what continues a command line, as `tfcompare completion SHELL -- WORD...`, which each script calls."""
    if shell == "bash":
        _print_for_bash(root, *words[:2])
        return
    *whole, unfinished = words or ("",)
    # The shells pass on a quote that is still open, and put it back themselves.
    unfinished = unfinished.lstrip("'\"")
    for each in complete_words(root, whole, unfinished):
        print(f"{each.word}\t{each.about()}" if shell == "fish" else _with_blank(each))


def _print_for_bash(root: Any, line: str, current: str = "") -> None:
    """Print what bash should put in place of the word that it takes for the current one."""
    words = split_line(line)
    unfinished = words[-1]
    # Bash passes the whole word if a quote is open, and otherwise only what follows the last break.
    current = "" if current in tuple(BREAKS) else current.lstrip("'\"")
    kept = len(unfinished) - len(current) if unfinished.endswith(current) else 0
    for each in complete_words(root, words[1:-1], unfinished):
        print(_with_blank(each)[kept:])


def split_line(line: str) -> list[str]:
    """Split a line, which may end inside quotes, into its words; the last one is unfinished."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        while (word := lexer.get_token()) is not None:
            words.append(word)
    except ValueError:
        # A quote is open, or a backslash is last; the lexer still has what it read of the word.
        return [*words, lexer.token]
    return [*words, ""] if not line or line[-1].isspace() else words


def _with_blank(candidate: Candidate) -> str:
    return f"{candidate.word} " if candidate.whole else candidate.word

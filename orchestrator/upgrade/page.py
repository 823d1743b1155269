"""The page of an upgrade as one HTML file, and as Markdown for a pull request or an issue."""

from pathlib import Path

from rich.text import Text

from orchestrator.reports.html.answer import AnswerPage, PageLine, PageTable, render_answer
from orchestrator.reports.html.rows import TableColumn
from orchestrator.terminal import output_file
from orchestrator.terminal.markdown import code
from orchestrator.upgrade.report import (
    UpgradeAnswer,
    count_dead,
    describe_subject,
    describe_upgrade,
    list_next,
    list_sections,
    read_cells,
    tell_decision,
)

PAGE = "report.html"
# The last is for several cases.
COLUMNS = (
    TableColumn("what", ""),
    TableColumn("old", "{old}", figure=True),
    TableColumn("new", "{new}", figure=True),
    TableColumn("change", "Change", figure=True),
    TableColumn("interval", "Interval", figure=True),
    TableColumn("verdict", "Verdict"),
    TableColumn("cases", "Cases"),
)


def write_upgrade_page(answer: UpgradeAnswer) -> Path:
    path = answer.outcome.path / PAGE
    output_file.write_output(path, render_upgrade_page(answer), "--output", within=True)
    return path


def render_upgrade_page(answer: UpgradeAnswer) -> str:
    state, (old, new) = answer.outcome.state, answer.names
    lines = tuple(PageLine(cells, _name_verdict(cells[5])) for cells in _read_rows(answer))
    return render_answer(
        AnswerPage(
            command="upgrade",
            title=f"{describe_subject(answer)}: {old} to {new}",
            case=describe_subject(answer),
            created=state.created,
            facts=describe_upgrade(answer),
            conclusions=[
                tell_decision(answer),
                *(text for title, lines in list_sections(answer) for text in (f"{title}:", *lines)),
                f"not tested: {', '.join(answer.untested)}",
                f"gates: {state.question.gates}",
                *(f"next: {command}" for command in list_next(answer)),
            ],
            notes=state.notes,
            figures=[],
            tables=[PageTable("What changes, in the case where it is worst", _read_columns(answer), lines)],
        )
    )


def _read_columns(answer: UpgradeAnswer) -> tuple[TableColumn, ...]:
    old, new = answer.names
    columns = COLUMNS if answer.has_several_cases else COLUMNS[:-1]
    return tuple(column._replace(header=column.header.format(old=old, new=new)) for column in columns)


def _read_rows(answer: UpgradeAnswer) -> list[tuple[str, ...]]:
    rows = [tuple(_plain(cell) for cell in read_cells(answer, row)) for row in answer.aspects]
    count = len(_read_columns(answer))
    return [row[:count] for row in (*rows, ("what dies", *count_dead(answer), "", "", "", ""))]


def _plain(cell: str | Text) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _name_verdict(text: str) -> str:
    """Return the CSS class of a verdict, whose text begins with a mark."""
    return "-".join(word for word in text.split() if word.isalpha())


def render_upgrade_markdown(answer: UpgradeAnswer) -> str:
    """Return the page as Markdown, in which every text from elsewhere is quoted."""
    columns = _read_columns(answer)
    titles = [f" {code(column.header) if column.header else ''} " for column in columns]
    table = [f"|{'|'.join(titles)}|", f"|{'|'.join('---:' if column.figure else '---' for column in columns)}|"]
    table += [f"|{'|'.join(f' {code(cell)} ' if cell else ' ' for cell in row)}|" for row in _read_rows(answer)]
    sections = [
        f"**{code(title)}**\n\n" + "\n".join(f"- {code(line)}" for line in lines)
        for title, lines in list_sections(answer)
    ]
    parts = [
        "### tfcompare",
        f"**{code(tell_decision(answer))}**",
        f"{code(' -> '.join(answer.names))}, {code(describe_subject(answer))}, {code(describe_upgrade(answer))}",
        "\n".join(table),
        *sections,
        f"Not tested: {', '.join(answer.untested)}. Gates: {code(answer.outcome.state.question.gates)}.",
        *(f"Next: {code(command)}" for command in list_next(answer)),
    ]
    return "\n\n".join(parts)

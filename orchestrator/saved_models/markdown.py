"""The table of saved models as Markdown, in which every text from elsewhere is quoted."""

from orchestrator.saved_models.judge import sum_up
from orchestrator.saved_models.report import ModelsAnswer, list_notes, list_rows, name_row, tell_failures
from orchestrator.terminal.markdown import build_table, code, join_lines


def render_models_markdown(answer: ModelsAnswer) -> str:
    cells, targets = answer.cells, answer.outcome.targets
    given = bool(answer.outcome.question.saved)
    parts = [
        "### tfcompare",
        join_lines(map(code, list_notes(answer))),
        build_table(
            ("file" if given else "saved in", "loaded as", *map(code, targets)),
            (
                (
                    code(row.source),
                    code(name_row(row, cells[row, targets[0]]).strip()),
                    *(code(sum_up(cells[row, target])) for target in targets),
                )
                for row in list_rows(answer)
            ),
        ),
        join_lines(f"{'  ' * line.startswith(' ')}- {code(line.strip())}" for line in tell_failures(answer)),
    ]
    return "\n\n".join(part for part in parts if part)

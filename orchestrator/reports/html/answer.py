"""The page of a search or of another question: what was found, drawings and tables, in one file without a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from orchestrator.reports.html.assets import FOLDER, asset, policy, template_environment
from orchestrator.reports.html.rows import TableColumn


@dataclass(frozen=True)
class PageLine:
    cells: tuple[str, ...]
    verdict: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table of the page; the column named `verdict` has the colour of its row's verdict."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[PageLine, ...]


@dataclass(frozen=True)
class PageFigure:
    """A drawing with its caption; `told` describes it to those who cannot see it."""

    title: str
    drawing: Markup
    caption: str
    told: str


@dataclass(frozen=True, kw_only=True)
class AnswerPage:
    """The content of a page; `command` asked the question."""

    command: str
    title: str
    case: str
    created: datetime
    facts: str
    conclusions: Sequence[str]
    notes: Sequence[str]
    figures: Sequence[PageFigure]
    tables: Sequence[PageTable]


def render_answer(page: AnswerPage) -> str:
    style = asset("page.css")
    template = template_environment(FOLDER).get_template("answer.html.j2")
    return template.render(policy=policy(style), style=style, **vars(page))

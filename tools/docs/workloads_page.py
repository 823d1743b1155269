"""docs/workloads.md: what TensorFlow is made to do, with the parameters of each workload."""

import ast

from orchestrator.catalog import workloads
from orchestrator.catalog.selectors import expand, parse_selector
from orchestrator.model import Workload
from tools.docs import WRITTEN


def workloads_page() -> str:
    all_workloads = workloads.all_workloads()
    named = {
        name: {parse_selector(text, all_workloads).workload for text in suite.cases}
        for name, suite in workloads.all_suites().items()
    }
    lines = [
        "# Workloads",
        WRITTEN,
        "",
        "Each workload is one file in `workloads/suite/` that says what TensorFlow does. You can write",
        "[your own](own-workload.md).",
        "",
        "| workload | what it does | cases | suites |",
        "|---|---|---|---|",
    ]
    for workload in all_workloads.values():
        cases = len(expand(parse_selector(workload.name, all_workloads), workload))
        listed = ", ".join(suite for suite, names in named.items() if workload.name in names)
        lines.append(f"| [`{workload.name}`](#{workload.name}) | {workload.summary} | {cases} | {listed} |")
    for workload in all_workloads.values():
        lines += ["", *_workload(workload)]
    return "\n".join(lines) + "\n"


def _workload(workload: Workload) -> list[str]:
    docstring = ast.get_docstring(ast.parse(workload.path.read_text())) or ""
    lines = [f"## {workload.name}", "", workload.summary]
    if rest := docstring.partition("\n")[2].strip("\n"):
        lines += ["", "```text", rest, "```"]
    if workload.params:
        lines += ["", "| parameter | values |", "|---|---|"]
        for name, values in workload.params.items():
            lines.append(f"| `{name}` | {', '.join(f'`{value}`' for value in values)} |")
    for name, base in workload.comparisons.items():
        lines += ["", f"Inside each target, every `{name}` is compared with `{base}`."]
    if workload.exclude:
        rules = "; ".join(", ".join(f"`{name}={value}`" for name, value in rule.items()) for rule in workload.exclude)
        lines += ["", f"Left out: {rules}."]
    return lines

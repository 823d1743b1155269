"""Answers programs that speak the Model Context Protocol: each request is a command in a separate process.

So a client gets the JSON of the command line and fewer rights than it has. A request that the client cancels ends like
an interrupted command, and a large run takes no memory of the server.
"""

import json
import tempfile
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError

from orchestrator.bundled import find_own_number
from orchestrator.child_process import BOUND_PROGRAM, kill_group
from orchestrator.cli.verbs import VERBS, ServedFolder
from orchestrator.errors import ArmsDied, OutcomeFound, TfCompareError, UsageError
from orchestrator.interrupts import POLITE_S
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import clip, escape_unprintable

INSTRUCTIONS = """\
tfcompare measures whether TensorFlow code is faster or slower in another TensorFlow, and says whether to believe it.
Start with `doctor` and `list`. `run` with dry_run=true shows what a measurement takes. Measure one thing at a time, and
leave the machine idle meanwhile. Quote a verdict with its interval, and compute no ratios yourself. An
inconclusive comparison has shown nothing; `explain` says why, and what would decide it. The exit code of each command
is in its answer."""
# These measure nothing and install nothing.
READING = ("list", "compare", "report", "explain")
# With these exit codes, a command has printed what it was asked for.
ANSWERED = (0, OutcomeFound.exit_code, ArmsDied.exit_code)
# More than this of an answer is not read. A run of all versions and cases takes a tenth of it.
MOST_BYTES = 64 * 2**20
KEPT_LINES, LONGEST_LINE = 60, 500
# An answer of more characters is not repeated as text.
LONGEST_TEXT = 200_000
RUN_FOLDER = "run folder: "


@dataclass
class ChildCommand:
    """A command of tfcompare in a separate process, with what it has printed."""

    words: list[str]
    place: ServedFolder
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    printed: bytes = b""
    exit_code: int = 0

    async def run(self, context: ServerRequestContext[Any, Any]) -> None:
        """Run the command, and report each line of its progress; if the client cancels the request, interrupt it."""
        with tempfile.TemporaryFile() as answer:
            process = await anyio.open_process(
                [*BOUND_PROGRAM, *self.words], cwd=self.place.folder, start_new_session=True, stdout=answer
            )
            try:
                await self._read_progress(process, context)
                self.exit_code = await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
            answer.seek(0)
            # An answer that is cut is unreadable, which is reported.
            self.printed = answer.read(MOST_BYTES)

    async def _read_progress(self, process: anyio.abc.Process, context: ServerRequestContext[Any, Any]) -> None:
        assert process.stderr is not None
        rest, number = b"", 0
        async for piece in process.stderr:
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[: 4 * LONGEST_LINE]
            for line in lines:
                self.lines.append(clip(escape_unprintable(line.decode(errors="replace")), LONGEST_LINE))
                number += 1
                await context.session.report_progress(number, message=self.lines[-1])

    def make_result(self) -> CallToolResult:
        """Return the answer: the JSON that the command printed, its exit code, and its messages."""
        answer: Any = None
        with suppress(ValueError):
            answer = json.loads(self.printed)
        folders = [line.removeprefix(RUN_FOLDER) for line in self.lines if line.startswith(RUN_FOLDER)]
        content = {
            "exit_code": self.exit_code,
            "run": folders[-1] if folders else None,
            "messages": list(self.lines),
            "answer": answer,
        }
        text = strict_json.dump(content)
        if len(text) > LONGEST_TEXT:
            note = "the answer is too long for text; the structured content has it, and `explain` a part of it"
            text = strict_json.dump({**content, "answer": note})
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=content,
            is_error=answer is None or self.exit_code not in ANSWERED,
        )


async def _end(process: anyio.abc.Process) -> None:
    """Interrupt a command that has not ended, and kill it with all that it started if it does not end."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(POLITE_S):
            # A command that cannot write its last lines would not end.
            if process.stderr:
                async for _ in process.stderr:
                    pass
            await process.wait()
        if process.returncode is None:
            kill_group(process.pid)
    await process.aclose()


def make_server(place: ServedFolder) -> Server[Any]:
    tools = [
        Tool(
            name=name,
            description=verb.__doc__,
            input_schema=verb.model_json_schema(),
            annotations=ToolAnnotations(read_only_hint=name in READING, destructive_hint=False, open_world_hint=False),
        )
        for name, verb in VERBS.items()
    ]

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        try:
            command = ChildCommand(make_words(params.name, params.arguments or {}, place), place)
        except TfCompareError as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        await command.run(context)
        return command.make_result()

    return Server(
        "tfcompare", version=find_own_number(), instructions=INSTRUCTIONS, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )  # fmt: skip


def make_words(name: str, arguments: dict[str, Any], place: ServedFolder) -> list[str]:
    """Return the command line of a request; raise UsageError for one that is not as its verb describes it."""
    if name not in VERBS:
        raise UsageError(f"there is no verb {name!r}; there are {', '.join(VERBS)}")
    try:
        verb = VERBS[name].model_validate(arguments)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, each['loc'])) or name}: {each['msg']}" for each in error.errors()]
        raise UsageError(f"{name}: {'; '.join(wrong)}") from error
    return verb.make_words(place)


async def serve_stdio(place: ServedFolder) -> None:
    server = make_server(place)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())

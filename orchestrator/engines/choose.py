"""Choose the engine of a run: the one asked for, or with `auto` the first that answers."""

from orchestrator.catalog import did_you_mean
from orchestrator.engines import AUTO, ENGINES, Engine
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.model import Isolation
from orchestrator.options import EngineOptions
from orchestrator.terminal.view import View


def choose_engine(wanted: str, isolation: Isolation, options: EngineOptions, view: View) -> tuple[str, Engine]:
    """Return the name and the engine; raise EngineUnavailable if no suitable engine answers."""
    names = find_candidates(wanted, isolation, options)
    failed: list[EngineUnavailable] = []
    for number, name in enumerate(names, 1):
        engine = ENGINES[name].make(options)
        try:
            answer = engine.check()
        except EngineUnavailable as error:
            failed.append(error)
            continue
        others = names[number:]
        instead = f" (it answers; --engine {others[0]} uses {ENGINES[others[0]].title} instead)" if others else ""
        view.say(f"engine: {answer}{f' ({failed[0].what})' if failed else instead}")
        return name, engine
    if len(failed) == 1:
        raise failed[0]
    # All errors are reported: one may advise an engine that another one reports as unavailable.
    raise EngineUnavailable("; ".join(f"{error.what}: {error.advice}" for error in failed))


def find_candidates(wanted: str, isolation: Isolation, options: EngineOptions) -> list[str]:
    """Return the usable engines, best first; raise UsageError if `wanted` is unknown or does not fit the options."""
    able = [name for name, info in ENGINES.items() if isolation in ("fork", info.isolation)]
    if options.runtime:
        able = [name for name in able if ENGINES[name].detached]
        if not able or (wanted in ENGINES and wanted not in able):
            raise UsageError(
                "--runtime chooses what runs the containers: use it with --engine docker, not with --isolation process"
            )
    if wanted == AUTO:
        return able
    if wanted not in ENGINES:
        raise UsageError(
            f"unknown engine {wanted!r}{did_you_mean(wanted, ENGINES)}; use one of {AUTO}, {', '.join(sorted(ENGINES))}"
        )
    if wanted not in able:
        raise UsageError(f"--isolation {isolation} goes with --engine {' or '.join(able)}")
    return [wanted]

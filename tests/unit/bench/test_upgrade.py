"""The programs of others run as they were named, and a page agrees only with what was judged of it."""

import hashlib
from pathlib import Path

import pytest

from bench import upgrade
from bench.upgrade import Judgement, Move, ThirdParty
from orchestrator.metrics.gates import parse_gates
from orchestrator.upgrade.judgement import OF_PROGRAMS

TEXT = b"print('a model')\n"
SLOWER, DIES = {"gate": "slower>10%"}, {"gate": "died"}


def program(judged: Judgement) -> ThirdParty:
    return ThirdParty(
        name="tcn",
        repository="someone/tcn",
        commit="ab" * 20,
        files={"lib/main.py": ("examples/main.py", hashlib.sha256(TEXT).hexdigest())},
        command=("python", "lib/main.py"),
        requirements=("numpy",),
        gates="",
        moves={"2.16": judged},
    )


def page(decision: str, *tripped: dict[str, str], flag: str | None = None) -> dict[str, object]:
    return {"decision": decision, "flag": flag, "tripped": tripped, "open": []}


@pytest.mark.parametrize(
    ("judged", "seen", "agrees"),
    [
        (Judgement("go", "nothing changed"), page("go"), True),
        (Judgement("go", "nothing changed"), page("not yet", SLOWER), False),
        (Judgement("not yet", "a class is gone", gate="died"), page("not yet", DIES), True),
        (Judgement("not yet", "a class is gone", gate="died"), page("not yet", SLOWER), False),
        (Judgement("not yet", "a class is gone", gate="died"), page("go"), False),
        (
            Judgement("go with a flag", "Keras 2 has it", flag="keras=2"),
            page("go with a flag", DIES, flag="2.16.2 keras=2"),
            True,
        ),
        (
            Judgement("go with a flag", "Keras 2 has it", flag="keras=2"),
            page("go with a flag", DIES, flag="2.16.2 TF_ENABLE_ONEDNN_OPTS=0"),
            False,
        ),
        (Judgement("go with a flag", "Keras 2 has it", flag="keras=2"), page("not yet", DIES), False),
    ],
)
def test_a_page_agrees_if_it_decides_the_same_for_the_same_cause(judged, seen, agrees: bool):
    assert Move(program(judged), "2.16", seen, 1.0, 0.0).agrees is agrees


def test_files_that_are_missing_or_changed_end_the_bench(tmp_path: Path):
    tcn, folder = program(Judgement("go", "")), tmp_path / "copy"
    with pytest.raises(SystemExit, match=r"main\.py is missing; it is https://\S+/someone/tcn/blob/abab\S+/examples"):
        upgrade.collect(tcn, tmp_path, folder)
    (tmp_path / "tcn" / "lib").mkdir(parents=True)
    (tmp_path / "tcn" / "lib" / "main.py").write_bytes(TEXT + b"# changed\n")
    with pytest.raises(SystemExit, match="has other contents"):
        upgrade.collect(tcn, tmp_path, folder)
    (tmp_path / "tcn" / "lib" / "main.py").write_bytes(TEXT)
    assert (upgrade.collect(tcn, tmp_path, folder) / "lib" / "main.py").read_bytes() == TEXT
    assert (folder / "requirements.txt").read_text() == "numpy\n"


def test_ten_programs_of_four_sources_are_judged_with_a_reason():
    programs = upgrade.read_programs()
    assert len({each.name for each in programs}) == len(programs) == 10
    assert len({each.repository for each in programs}) >= 4
    for each in programs:
        assert tuple(each.moves) == ("2.16", "2.20")
        parse_gates(each.gates or OF_PROGRAMS)
        assert all(judged.reason and judged.decision in upgrade.DECISIONS for judged in each.moves.values())
    # A command that always gives the same answer does not agree with most.
    decisions = [judged.decision for each in programs for judged in each.moves.values()]
    assert max(map(decisions.count, upgrade.DECISIONS)) < upgrade.AGREE * len(decisions)
    assert set(decisions) == set(upgrade.DECISIONS)

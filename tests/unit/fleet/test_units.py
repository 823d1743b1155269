"""A run is divided into units: what is compared, or what a claim needs, is measured on one host."""

from dataclasses import replace

from orchestrator.catalog import claims
from orchestrator.catalog.workloads import all_workloads
from orchestrator.fleet.units import SENT_A_SECOND, divide_run, find_sending_s, request
from orchestrator.plan.request import RunOptions, check_request

BUILTIN = claims.all_claims(all_workloads())
QUICK = RunOptions(versions=("1.14", "2.0"))


def test_every_case_is_in_one_unit_and_every_comparison_in_one():
    planned = check_request(QUICK)
    units = divide_run(planned)
    assert sorted(case for unit in units for case in unit.cases) == sorted(planned.selection.cases)
    for pair in planned.selection.pairs:
        assert any(set(pair.cases) <= set(unit.cases) for unit in units)
    assert [unit.number for unit in units] == list(range(1, len(units) + 1))


def test_claims_that_share_a_case_are_one_unit():
    chosen = claims.choose_claims((), "studies", BUILTIN)
    planned = check_request(RunOptions(claims=chosen, suite="studies"))
    units = divide_run(planned)
    assert sorted(claim.name for unit in units for claim in unit.claims) == sorted(claim.name for claim in chosen)
    cases = [case for unit in units for case in unit.cases]
    assert len(cases) == len(set(cases)) == len(planned.selection.cases)
    assert all(set(claim.cases) <= set(unit.cases) for unit in units for claim in unit.claims)
    assert len(units) > 1


def test_a_host_measures_just_the_cases_of_its_unit():
    planned = check_request(replace(QUICK, seed=5))
    for unit in divide_run(planned):
        asked = check_request(request(unit, planned, "venv", 2))
        assert asked.selection.cases == unit.cases
        assert (asked.options.engine, asked.seed, asked.options.out) == ("venv", 5, None)


def test_a_budget_is_that_of_the_whole_run_on_all_hosts():
    planned = check_request(replace(QUICK, budget_s=100.0))
    units = divide_run(planned)
    alone = sum(request(unit, planned, "venv", 1).budget_s or 0.0 for unit in units)
    assert round(alone, 6) == 100.0
    shared = [request(unit, planned, "venv", 2).budget_s or 0.0 for unit in units]
    assert round(sum(shared), 6) == 200.0
    # Two hosts that measure each unit twice have each unit once at a time.
    assert round(sum(2 * (request(unit, planned, "venv", 2 / 2).budget_s or 0.0) for unit in units), 6) == 200.0
    assert all((request(unit, planned, "venv", 50).budget_s or 0.0) <= 100.0 for unit in units)
    # Without one, a host takes what is usual for the cases that it has.
    assert all(request(unit, check_request(QUICK), "venv", 2).budget_s is None for unit in units)


def test_many_hosts_do_not_send_more_than_one_command_can_write():
    assert find_sending_s(1) == find_sending_s(10) == 5.0
    assert 1000 / find_sending_s(1000) == SENT_A_SECOND

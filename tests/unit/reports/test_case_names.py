"""Short names of cases."""

from orchestrator.reports.case_names import short_names
from tests.support.builders import case

SIZES = tuple(case("power", style="eager", size=str(size)) for size in range(4))


def test_short_names_leave_out_what_all_cases_of_a_workload_share():
    cases = (*SIZES[:2], case("predict", model="tiny"), case("import"))
    assert short_names(cases) == {
        "power[style=eager,size=0]": "power 0",
        "power[style=eager,size=1]": "power 1",
        "predict[model=tiny]": "predict",
        "import": "import",
    }

"""tfcompare's host side: plans, engines, measurement, verdicts and reports."""

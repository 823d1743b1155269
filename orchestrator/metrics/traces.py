"""The Python functions that a replicate traces into graphs, in its first calls and in each later one.

All arms make equally many first calls. A count over all calls would depend on how many an arm makes, so on its speed.
"""

from orchestrator.metrics.spec import MetricSpec
from orchestrator.metrics.units import COUNT, COUNT_PER_CALL

SPECS = (
    MetricSpec(
        name="traces",
        about="traces of the first five calls",
        more="traces more functions",
        less="traces fewer functions",
        worse="more",
        better="less",
        values=lambda replicate: () if replicate.traces is None else (float(replicate.traces),),
        units=COUNT,
        figure=lambda arm: arm.traces,
        unit="traces",
        show=COUNT.show,
        # One trace more is a difference, and less than one there is not.
        margin=0.5,
        judged_with=("traces_per_call",),
    ),
    MetricSpec(
        name="traces_per_call",
        about="traces of a later call",
        more="traces more functions in later calls",
        less="traces fewer functions in later calls",
        worse="more",
        better="less",
        values=lambda replicate: () if replicate.later_traces is None else (replicate.later_traces / 1000,),
        units=COUNT_PER_CALL,
        figure=lambda arm: arm.traces_per_call,
        unit="traces",
        show=COUNT_PER_CALL.show,
        margin=0.1,
    ),
)

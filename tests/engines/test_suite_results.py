"""What the calls of built-in workloads return in a real TensorFlow."""

import re

from orchestrator.measure.trial import try_workloads
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View

# The cases of the suite quick, and one or two of other workloads that take little time; none of them has a `no_result`.
SELECTED = (
    "train_loop[api=tf.keras,input=numpy,model=small,data=small]",
    "predict[call=predict,state=uncompiled|compiled,model=tiny]",
    "power[style=eager|function]",
    "batch_lengths[length=same]",
    "cached_shuffle[shuffle=without]",
    "custom_loop[loop=function]",
    "fit_generator[call=fit]",
    "fit_input[input=arrays]",
    "float_list",
    "from_generator[fields=1]",
    "graph_step[mode=graph]",
    "load_model[loader=h5|module]",
    "predict_shapes[calls=few]",
    "q_learning[calls=on_batch]",
    "saved_dataset[source=saved]",
    "tracing[argument=tensor]",
)


def test_no_call_returns_whether_something_holds_or_how_many_there_are() -> None:
    options = RunOptions(versions=("2.13",), selected=SELECTED, engine="venv")
    tried = try_workloads(plan_run(options, View(), fewest=1), View())
    assert {(arm.outcome, arm.reason) for arm in tried} == {("ran", "")}
    assert {arm.case.workload for arm in tried} == {selector.partition("[")[0] for selector in SELECTED}
    outputs = {arm.case.label: arm.output for arm in tried}
    assert {label: output for label, output in outputs.items() if re.search(r"\b(bool|int|NoneType)\b", output)} == {}

"""Runs in apache-otava's Python: reads series and writes the change points found on each night, both as JSON."""

import json
import sys

from otava.analysis import compute_change_points


def find_change_points(values, since, setting):
    nights = []
    for night in range(since, len(values)):
        points, _ = compute_change_points(values[: night + 1], window_len=50, **setting)
        nights.append((night, [(int(point.index), bool(point.stats.mean_2 > point.stats.mean_1)) for point in points]))
    return nights


request = json.load(sys.stdin)
change_points = [
    [find_change_points(series["values"], series["since"], setting) for setting in request["settings"]]
    for series in request["series"]
]
json.dump(change_points, sys.stdout)

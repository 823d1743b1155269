"""Runs in apache-otava's Python: reads series and writes what is found on each of their nights, both as JSON."""

import json
import sys

from otava.analysis import compute_change_points


def found(values, since, setting):
    nights = []
    for night in range(since, len(values)):
        points, _ = compute_change_points(values[: night + 1], window_len=50, **setting)
        nights.append((night, [(int(point.index), bool(point.stats.mean_2 > point.stats.mean_1)) for point in points]))
    return nights


asked = json.load(sys.stdin)
said = [[found(one["values"], one["since"], setting) for setting in asked["settings"]] for one in asked["series"]]
json.dump(said, sys.stdout)

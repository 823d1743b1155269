"""Runs whose cases are measured on several machines: each case as a whole on one of them.

units.py     what is measured together, and how much of the budget it gets
model.py     what the parts of a fleet tell each other
place.py     which host may measure which unit; pure
roster.py    the machines that there are, and what they say they are
dispatch.py  hands units to hosts, one at a time each, and answers to failures; knows no Ray
cluster.py   the only module that knows Ray
host.py      what a host does with a unit, which a separate process measures
measure.py   that process
arrive.py    checks what comes back, and adds it to the run folder
conduct.py   the course of such a run, from top to bottom, also of one that continues
replicas.py  whether two hosts that measured the same agree
single.py    one run after another on the same host
machines.py  starts and ends a fleet on plain machines, over ssh
"""

"""Runs whose cases are measured on several machines: each case as a whole on one of them.

units.py         what is measured together, and how much of the budget it gets
model.py         what the parts of a fleet tell each other
place.py         which host may measure which unit; pure
roster.py        the machines that there are, and what they say they are
dispatch.py      hands units to hosts, one at a time each, and answers to failures; knows no ssh and no Ray
machines.py      machines that ssh reaches
cluster.py       machines of a Ray cluster; the only module that knows Ray
packets.py        what a command and a host say to each other
host_process.py  a process on a host, and what it says
host.py          what a host does: it says what it is, and has units measured
measure.py       the process that measures a unit
arrive.py        checks what comes back, and adds it to the run folder
conduct.py       the course of such a run, from top to bottom, also of one that continues
replicas.py      whether two hosts that measured the same agree
single.py        one run after another on the same host
"""

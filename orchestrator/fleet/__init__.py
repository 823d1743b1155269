"""Runs whose cases are measured on several machines, each case as a whole on one of them.

units.py         divides a run into units, and gives each its share of the budget
model.py         the types that the parts of a fleet exchange
place.py         decides which host may measure which unit; pure
roster.py        keeps track of the machines, and of their reports about themselves
dispatch.py      hands units to hosts, one at a time to each, and handles failures; knows neither ssh nor Ray
machines.py      machines that are reached by ssh
cluster.py       machines of a Ray cluster; the only module that knows Ray
packets.py       the packets that a command and a host send each other
host_process.py  a process that does one thing on a host, and sends packets
host.py          the side of a host: it describes itself, and has units measured
measure.py       the process that measures a unit
arrive.py        checks results that arrive, and adds them to the run folder
conduct.py       carries out such a run from start to finish, also if it is continued
replicas.py      compares two hosts that measured the same cases
single.py        measures one run after another on the same host
"""

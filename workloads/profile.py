"""A replicate under two profilers: cProfile for calls and times per function, a small tracer for whole stacks.

Both see the thread that makes the calls and no other. A time under a profiler is longer than a measured one, so
nothing of this goes into a stream; a few calls without one are timed only to show how much longer.
"""

import cProfile
import gc
import os
import re
import sys
import tempfile
import time
import types

from workloads import backends, layers, values
from workloads.replicate import Replicate, count_of

# Calls without a profiler, and those under the tracer, are limited in number and in total time.
PLAIN_CALLS, PLAIN_NS = 10, 2 * 10**9
TRACED_CALLS, TRACED_NS = 5, 5 * 10**9
# The call tree is bounded while it grows, and branches below a share of all time are folded into their callers.
DEEPEST = 200
MOST_NODES = 200000
FOLD_BELOW = 0.001

GENERATED, NAMELESS = "<generated>", "<nameless>"
# cProfile sees its own switch-off as this function.
SWITCH = ("", 0, "Profiler.disable")


class ProfiledReplicate(Replicate):
    """A replicate with one answer: it builds, makes its calls, and reports where the time went."""

    def begin(self):
        return self._guarded(self._profile if self.order["calls"] else self._tell_layers)

    def _tell_layers(self):
        step = self._prepare()()
        self.stage = "a call"
        of_tensorflow = None if self.framework is backends else self.tf
        return self._answer("profiled", profile={"layers": layers.record(of_tensorflow, lambda: _outermost(step))})

    def _profile(self):
        build = self._prepare()
        start, later = cProfile.Profile(subcalls=False), cProfile.Profile(subcalls=False)
        start.enable()
        try:
            step = build()
        finally:
            start.disable()
        steps = count_of(step, "steps")
        self.stage = "a call"
        # The first two calls trace, compile and allocate, so they are kept apart, together with the build.
        for _ in range(2):
            _timed(step, start)
        plain, walls = [], []
        while len(walls) < self.order["calls"]:
            # Both kinds of calls alternate, so that whatever disturbs the machine disturbs both.
            if len(plain) < PLAIN_CALLS and sum(plain) < PLAIN_NS:
                plain.append(_timed(step))
            walls.append(_timed(step, later))
        spent = spent_by_cprofile(later)
        whole = any(code is _outermost.__code__ and calls == len(walls) for code, calls, _, _ in spent)
        if not whole:
            # In some releases of Python 3.12 and 3.13, cProfile loses track at C functions that are bound as methods.
            counting = Tree()
            walls = [_timed(step, counting) for _ in walls]
            spent = counting.spent()
        tree, traced = Tree(), []
        while not traced or (len(traced) < TRACED_CALLS and sum(traced) < TRACED_NS):
            traced.append(_timed(step, tree))
        places = Places(self.folders)
        return self._answer(
            "profiled",
            profile={
                "profiler": "cProfile" if whole else "tracer",
                "calls": len(walls),
                "steps": steps,
                "plain_ns": plain,
                "profiled_ns": walls,
                "functions": functions(spent_by_cprofile(start), spent, places),
                "stacks": dict(tree.stacks(places), calls=len(traced)),
            },
        )


def _timed(step, profiler=None):
    """Return the wall time of one call, in nanoseconds."""
    begun = time.perf_counter()
    if profiler is None:
        _outermost(step)
    else:
        profiler.enable()
        try:
            _outermost(step)
        finally:
            profiler.disable()
    return int((time.perf_counter() - begun) * 1e9)


def _outermost(step):
    """Make one call, and copy its result to the host as every replicate does. Profiles leave this function out."""
    return values.to_host(step())


class Places:
    """The places of functions, relative to the folders that Python imports from."""

    def __init__(self, folders):
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        roots = set(map(os.path.abspath, [package] + list(folders) + [entry for entry in sys.path if entry]))
        # The innermost folder comes first.
        self.roots = [os.path.join(root, "") for root in sorted(roots, key=len, reverse=True)]
        self.scratch = os.path.join(tempfile.gettempdir(), "")
        self.names = _qualified_names()

    def of(self, code):
        """Return (file, line, name) of a code object; a function written in C has only the name from the profiler."""
        if isinstance(code, str):
            return "", 0, c_name(code)
        name = getattr(code, "co_qualname", None) or self.names.get(id(code), code.co_name)
        return self.file(code.co_filename), code.co_firstlineno, name

    def file(self, path):
        if path.startswith("<"):
            return path
        for root in self.roots:
            if path.startswith(root):
                return path[len(root) :]
        # AutoGraph writes what it converts into files with random names.
        return GENERATED if path.startswith(self.scratch) else os.path.basename(path)


def _qualified_names():
    """Return names such as `Model.predict` by the ids of code objects, which know them only from Python 3.11 on."""
    names = {}
    for function in gc.get_objects():
        if type(function) is types.FunctionType:
            name, code = function.__qualname__, function.__code__
            # A decorator's wrapper bears the name of what it wraps.
            if name.rpartition(".")[2] == code.co_name:
                _name_all(code, name, names)
    return names


def _name_all(code, name, names):
    names[id(code)] = name
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _name_all(inner, f"{name}.<locals>.{inner.co_name}", names)


def c_name(text):
    """Return `list.append` for "<method 'append' of 'list' objects>", and `len` for "<built-in method builtins.len>".

    The module that holds a C function changes with the version, and its address with every process.
    """
    method = re.match(r"<(?:method|slot wrapper) '(.+)' of '(.+)' objects>$", text)
    if method:
        return "{}.{}".format(method.group(2).rpartition(".")[2], method.group(1))
    built_in = re.match(r"<built-in method (.*?)( of type object at 0x\w+)?>$", text)
    if built_in:
        text = built_in.group(1).rpartition(".")[2]
    # Functions of pybind11 say so in their qualified names, and may have no other name.
    return re.sub(r"^(PyCapsule|pybind11\w*)\.| at 0x\w+", "", text) or NAMELESS


def spent_by_cprofile(profile):
    """Return (code, calls, own seconds, cumulative seconds) of each function."""
    return [(entry.code, entry.callcount, entry.inlinetime, entry.totaltime) for entry in profile.getstats()]


def functions(start, later, places):
    """Return what each function spent until the third call, and in the later calls."""
    found = {}
    for phase, spent in (("start", start), ("later", later)):
        for code, calls, own_s, cumulative_s in spent:
            place = places.of(code)
            if code is _outermost.__code__ or place == SWITCH:
                continue
            # A function that is made again in each call counts as one function.
            sums = found.setdefault(place, {"start": [0, 0.0, 0.0], "later": [0, 0.0, 0.0]})[phase]
            for position, value in enumerate((calls, own_s, cumulative_s)):
                sums[position] += value
    return [
        dict(zip(("file", "line", "name"), place), start=_spent(*sums["start"]), later=_spent(*sums["later"]))
        for place, sums in sorted(found.items())
    ]


def _spent(calls, own_s, cumulative_s):
    return {"calls": calls, "own_ns": int(own_s * 1e9), "cumulative_ns": int(cumulative_s * 1e9)}


class Node:
    """A function reached by one stack."""

    __slots__ = ("calls", "children", "code", "own", "total")

    def __init__(self, code):
        self.code = code
        self.children = {}
        self.calls = 0
        self.own = 0.0

    def add_up(self):
        self.total = self.own + sum(child.add_up() for child in self.children.values())
        return self.total


class Tree:
    """Calls and own time by stack. Beyond its bounds a call counts as its caller's time."""

    def __init__(self):
        self.root = Node(None)
        self.nodes = 1

    def enable(self):
        self.path, self.keys = [self.root], [None]
        self.last = time.perf_counter()
        sys.setprofile(self._watch)

    def disable(self):
        sys.setprofile(None)
        # The tracer has seen itself being switched off.
        self.root.children.pop(id(Tree.disable.__code__), None)

    def _watch(self, frame, event, arg):
        # The time of the tracer itself, from here to its last line, counts for no function.
        self.path[-1].own += time.perf_counter() - self.last
        if event == "call":
            self._enter(id(frame.f_code), frame.f_code)
        elif event == "return":
            self._leave(id(frame.f_code))
        else:
            name = getattr(arg, "__qualname__", None) or type(arg).__name__
            if event == "c_call":
                self._enter(name, name)
            elif name == self.keys[-1]:
                # Some releases of Python 3.12 report returns from C functions whose calls they did not report.
                self._leave(name)
        self.last = time.perf_counter()

    def _enter(self, key, code):
        top = self.path[-1]
        child = top.children.get(key)
        if child is None:
            child = top
            if len(self.path) <= DEEPEST and self.nodes < MOST_NODES:
                child = top.children[key] = Node(code)
                self.nodes += 1
        child.calls += child is not top
        self.path.append(child)
        self.keys.append(key)

    def _leave(self, key):
        for depth in range(len(self.keys) - 1, 0, -1):
            if self.keys[depth] == key:
                del self.path[depth:], self.keys[depth:]
                return

    def spent(self):
        """Return the same as `spent_by_cprofile`, from this tree."""
        found, above = {}, []

        def add(node):
            key = node.code if isinstance(node.code, str) else id(node.code)
            sums = found.setdefault(key, [node.code, 0, 0.0, 0.0])
            sums[1] += node.calls
            sums[2] += node.own
            sums[3] += 0.0 if key in above else node.total
            above.append(key)
            for child in node.children.values():
                add(child)
            above.pop()

        self.root.add_up()
        for node in self.root.children.values():
            add(node)
        return [tuple(sums) for sums in found.values()]

    def stacks(self, places):
        """Return nodes as [parent, frame, own ns], parents before children; the outermost have the parent -1."""
        frames, nodes = {}, []
        self.root.add_up()
        called = [node for node in self.root.children.values() if node.code is _outermost.__code__]
        floor = FOLD_BELOW * sum(node.total for node in called)

        def add(children, parent):
            for node in children:
                kept = [child for child in node.children.values() if child.total >= floor]
                own = node.total - sum(child.total for child in kept)
                frame = frames.setdefault(places.of(node.code), len(frames))
                nodes.append([parent, frame, int(own * 1e9)])
                add(kept, len(nodes) - 1)

        for node in called:
            add(node.children.values(), -1)
        return {"fold_below": FOLD_BELOW, "frames": [list(place) for place in frames], "nodes": nodes}

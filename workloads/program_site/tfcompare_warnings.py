"""Collect what the user's code is warned of: what is deprecated, and will change or go; stdlib only, Python 3.6 syntax.

Python's own warnings are read where they are given, so that no filter of the program hides one. TensorFlow writes most
of its warnings into its log. A warning belongs to the user's code if a line of it is what the warning is about; all others
come from inside packages, which only their authors can change.
"""

import contextlib
import json
import logging
import os
import re
import sys
import warnings

# A warning of another category counts if it says one of these.
KINDS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
SAYS = re.compile(r"deprecat|will be removed|is removed in|future version|no longer be supported", re.IGNORECASE)
# TensorFlow begins its own like this.
CALLED_FROM = re.compile(r"From (?P<file>.+?):(?P<line>\d+): ")
MOST_TEXT, MOST_WARNINGS = 500, 300


class Collector(logging.Handler):
    """The warnings of a process, each once for each line that it is about."""

    def __init__(self, folders, path=""):
        """Collect for the code in these folders; `path` is a file that is written after each new warning."""
        logging.Handler.__init__(self, logging.WARNING)
        self.folders = [os.path.join(os.path.realpath(folder), "") for folder in folders]
        self.path, self.pid = path, os.getpid()
        self.found = {}
        # This many warnings were read, and are on their way to Python's own function.
        self.passing = 0

    def watch(self):
        self.warn = warnings.warn
        warnings.warn = self._warn
        for kind in KINDS:
            warnings.simplefilter("always", kind)
        # Modules that imported `warn` by its name before, and those in C, come here.
        warnings.showwarning = self._show
        logging.getLogger("tensorflow").addHandler(self)

    def _warn(self, message, category=None, stacklevel=1, *args, **kwargs):
        with contextlib.suppress(Exception):
            frame = sys._getframe(1)
            for _ in range(stacklevel - 1):
                frame = frame.f_back or frame
            kind = type(message) if isinstance(message, Warning) else category or UserWarning
            self.add(kind, str(message), frame.f_code.co_filename, frame.f_lineno)
        self.passing += 1
        try:
            return self.warn(message, category, stacklevel + 1, *args, **kwargs)
        finally:
            self.passing -= 1

    def _show(self, message, category, filename, lineno, file=None, line=None):
        with contextlib.suppress(Exception):
            if not self.passing:
                self.add(category, str(message), filename, lineno)

    def emit(self, record):
        with contextlib.suppress(Exception):
            text = record.getMessage()
            place = CALLED_FROM.match(text)
            if place:
                self.add(DeprecationWarning, text[place.end() :], place.group("file"), int(place.group("line")))
            else:
                self.add(UserWarning, text, record.pathname, record.lineno)

    def add(self, kind, text, file, line):
        if not (issubclass(kind, KINDS) or SAYS.search(text)) or len(self.found) >= MOST_WARNINGS:
            return
        own = self._find_own(file)
        text = " ".join(text.split())[:MOST_TEXT]
        key = kind.__name__[:100], text, own or _find_package(file), line if own else 0
        self.found[key] = bool(own)
        if self.path and os.getpid() == self.pid:
            with open(self.path, "w") as written:
                json.dump(self.list(), written)

    def list(self):
        return [
            {"kind": kind, "text": text, "place": place, "line": line, "own": own}
            for (kind, text, place, line), own in self.found.items()
        ]

    def _find_own(self, file):
        """Return the path of a file of the user's below its folder, or ''."""
        path = os.path.realpath(file)
        inner = next((path[len(folder) :] for folder in self.folders if path.startswith(folder)), "")
        return inner[:200] if os.path.isfile(path) else ""


def _find_package(file):
    """Return the name of the package that a file belongs to."""
    for name in ("site-packages", "dist-packages"):
        _, found, inner = file.rpartition(os.sep + name + os.sep)
        if found:
            return inner.split(os.sep)[0].split(".")[0][:100]
    return os.path.basename(file)[:100]


def watch(path):
    """Collect for the program in the working directory, and write what was found into this file."""
    Collector([os.getcwd()], path).watch()

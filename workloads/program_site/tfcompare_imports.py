"""Do something to a module as soon as a program has imported it; stdlib only, Python 3.6 syntax."""

import sys


class Finder:
    """A finder that leaves the search to the other finders, and acts on modules once they are loaded."""

    def __init__(self, is_wanted, act):
        self.is_wanted, self.act = is_wanted, act

    def find_spec(self, name, path=None, target=None):
        if not self.is_wanted(name):
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self.act(module)

            spec.loader.exec_module = exec_module
        return spec


def act_after_import(is_wanted, act):
    """Call `act` with each module whose name is wanted, once it is loaded."""
    sys.meta_path.insert(0, Finder(is_wanted, act))

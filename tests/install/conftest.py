from tests.support.installed import index, packages, stubs

__all__ = ["index", "packages", "stubs"]

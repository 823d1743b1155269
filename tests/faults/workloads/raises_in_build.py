"""Fails while it is built."""


def build(tf, params):
    raise ValueError("broken in [bold]build[/bold]")

"""Fails in its third call."""


def build(tf, params):
    calls = []

    def step():
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError("broken in the third call")

    return step

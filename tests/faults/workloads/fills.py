"""Takes all room of the disk that TF_CPP_FILL names, from its eighth call on and while a file there asks for it."""
import os
import time


def build(tf, params):
    calls = []

    def step():
        calls.append(None)
        place = os.environ["TF_CPP_FILL"]
        if len(calls) > 7 and tf.__version__.startswith("2.") and os.path.exists(os.path.join(place, "wanted")):
            try:
                with open(os.path.join(place, "filler"), "ab", buffering=0) as filler:
                    while True:
                        filler.write(b"x" * 4096)
            except OSError:
                pass
        time.sleep(0.005)

    return step

"""Answers by itself, through its own pipe to the worker, with what no replicate would say."""

import gc
import os
import stat

PARAMS = {"answer": ("walls", "kind", "text", "deep", "bytes")}
ANSWERS = {
    "walls": b'{"kind":"measured","replicate":REPLICATE,"walls_ns":[-5],"cpu_ns":1}\n',
    "kind": b'{"kind":"bye"}\n',
    "text": b"hello\n",
    "deep": b"[" * 100000 + b"\n",
    "bytes": b"\xff\xfe\n",
}


def build(tf, params):
    [replicate] = [found for found in gc.get_objects() if type(found).__name__ == "Replicate"]
    answer = ANSWERS[params["answer"]].replace(b"REPLICATE", str(replicate.order["replicate"]).encode("ascii"))

    def step():
        # The worker's end is the one pipe that can be written to, besides what was inherited for printing.
        for fd in range(3, 64):
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.write(fd, answer)
            except OSError:
                pass

    return step

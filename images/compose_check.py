"""Print in one line whether a version works in its container; docker-compose.yml runs this.

It runs on the GPU if there is one; with `TFCOMPARE_DEVICE=gpu` there has to be one. It supports Python from 3.6
on, and TensorFlow from 1.14 on.
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

SIZE = 256


def main():
    try:
        gpus = tf.config.list_physical_devices("GPU")
    except AttributeError:
        # Before TensorFlow 2.1, this function was in tf.config.experimental.
        gpus = tf.config.experimental.list_physical_devices("GPU")
    if os.environ.get("TFCOMPARE_DEVICE") == "gpu" and not gpus:
        print(f"TensorFlow {tf.__version__} sees no GPU")
        return 1
    tf.compat.v1.enable_eager_execution()
    with tf.device("/GPU:0" if gpus else "/CPU:0"):
        ones = tf.ones([SIZE, SIZE])
        begun = time.perf_counter()
        found = float(tf.reduce_sum(tf.matmul(ones, ones)).numpy())
        took = time.perf_counter() - begun
    if found != float(SIZE) ** 3:
        print(f"TensorFlow {tf.__version__} multiplies wrongly: {found}")
        return 1
    where = f"{len(gpus)} GPUs" if gpus else "the CPU"
    print(f"TensorFlow {tf.__version__} works on {where}; the first product took {took * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

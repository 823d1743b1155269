"""Says in its log what it may use, and takes no two times alike."""
import os
import random
import resource
import time


def build(tf, params):
    affinity = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    print(f"whoami cpus={affinity} data={resource.getrlimit(resource.RLIMIT_DATA)[0]} cgroup={_cgroup()}")
    draw = random.Random()
    return lambda: time.sleep(draw.uniform(0, 0.02) * draw.choice((0.1, 1)))


def _cgroup():
    try:
        with open("/sys/fs/cgroup/memory.max") as limit:
            return limit.read().strip()
    except OSError:
        return "none"

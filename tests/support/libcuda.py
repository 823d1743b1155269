"""A libcuda.so.1 that answers as its variables say: STUB_CUINIT, STUB_CUDA_DEVICES and, for slices, STUB_MIG.

A libnvidia-ml.so.1 is written next to it. It counts the energy of STUB_WATTS, or nothing if that is not set.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

UUID = "4d4d4d4d-4d4d-4d4d-4d4d-4d4d4d4d4d00"
SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int number(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
int cuInit(unsigned flags) { return number("STUB_CUINIT"); }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = number("STUB_CUDA_DEVICES"); return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Tesla T4", size); return 0; }
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, 0x4d, 16); uuid[15] = device; return 0; }
/* What a probe of a GPU does with it: it is busy for a millisecond. */
int cuCtxCreate_v2(void **context, unsigned flags, int device) { *context = context; return number("STUB_CTX"); }
int cuCtxDestroy_v2(void *context) { return 0; }
int cuModuleLoadData(void **module, const void *image) { *module = module; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = function; return 0; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c,
                   unsigned shared, void *stream, void **arguments, void **extra) { return 0; }
int cuCtxSynchronize(void) { usleep(1000); return 0; }
int cuDeviceGetUuid_v2(char *uuid, int device) {
    cuDeviceGetUuid(uuid, device);
    if (number("STUB_MIG")) uuid[0] = 1;
    return 0;
}
"""
OF_ENERGY = r"""
#include <stdlib.h>
#include <time.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) { *device = device; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy) {
    const char *watts = getenv("STUB_WATTS");
    struct timespec now;
    if (!watts) return 3;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* It counts every 20 ms. */
    *energy = (now.tv_sec * 50ull + now.tv_nsec / 20000000) * 20 * atoi(watts);
    return 0;
}
"""


def build(folder: Path) -> Path:
    """Compile the libraries into a folder; without a compiler, the test is skipped."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler for a stub of libcuda")
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in (("libcuda.so.1", SOURCE), ("libnvidia-ml.so.1", OF_ENERGY)):
        command = [compiler, "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(folder / name)]
        subprocess.run(command, input=source.encode(), check=True)
    return folder

"""The energy that GPUs have taken, as NVIDIA's management library counts it; stdlib only, Python 3.6 syntax."""

import contextlib
import ctypes

LIBRARY = "libnvidia-ml.so.1"


class Meter:
    """Reads the energy of GPUs with these UUIDs; it knows nothing of a slice of a GPU."""

    def __init__(self, uuids):
        self.gpus = []
        # An old library lacks some of these functions.
        with contextlib.suppress(OSError, AttributeError):
            nvml = ctypes.CDLL(LIBRARY)
            self.read_energy, self.find_gpu = nvml.nvmlDeviceGetTotalEnergyConsumption, nvml.nvmlDeviceGetHandleByUUID
            if nvml.nvmlInit_v2() == 0:
                self.gpus = [self._find(uuid) for uuid in uuids]

    def read_mj(self):
        """Return the millijoules that all GPUs have taken since the driver was loaded, or None if one does not say."""
        read = [self._read(gpu) for gpu in self.gpus]
        return sum(read) if read and None not in read else None

    def _find(self, uuid):
        gpu = ctypes.c_void_p()
        return gpu if self.find_gpu(uuid.encode("ascii"), ctypes.byref(gpu)) == 0 else None

    def _read(self, gpu):
        if gpu is None:
            return None
        energy = ctypes.c_ulonglong()
        return energy.value if self.read_energy(gpu, ctypes.byref(energy)) == 0 else None

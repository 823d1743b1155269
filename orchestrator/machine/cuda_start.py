"""Says in a sentence why CUDA does not start, from what NVIDIA's driver answered where TensorFlow sees no GPU."""

from collections.abc import Sequence
from dataclasses import dataclass

# What cuInit returns, by NVIDIA's numbers, and what to do about it.
CODES = {
    2: "the GPU has no memory left for another process: look with `nvidia-smi`",
    3: "the driver was not started in the process: this is how it answers a process that was forked after its start",
    34: "the libcuda.so.1 there is the stub of an image and not the driver's: the container toolkit has not put the "
    "driver's libraries in. Update the toolkit, or try --gpu-request cdi",
    46: "the GPU is in use and takes no second process (its compute mode): --gpu-exclusive opens one at a time",
    100: "the driver finds no GPU: none was handed over, or CUDA_VISIBLE_DEVICES hides it",
    101: "the driver does not know the GPU that CUDA_VISIBLE_DEVICES names",
    304: "the operating system refuses access: see who may open /dev/nvidia*, and whether a security module forbids it",
    802: "the driver is not ready: on machines whose GPUs are linked by NVSwitch, the fabric manager has to run. "
    "`systemctl start nvidia-fabricmanager` starts it",
    803: "the driver in the kernel and its libraries have different versions, as after an update: restart the machine",
    804: "the image brings libraries for compatibility that this GPU does not take: it needs a newer driver",
    999: "the driver does not say why: perhaps its module nvidia_uvm is not loaded, which `nvidia-modprobe -u` does",
}


@dataclass(frozen=True)
class DriverAnswer:
    """What the driver answered: `library` says why libcuda.so.1 was not loaded, and `code` what cuInit returned.

    `version` is that of the newest CUDA that the driver can run, as 12040 for 12.4. `absent` lists the libraries that
    TensorFlow did not find.
    """

    library: str = ""
    code: int = 0
    version: int = 0
    absent: Sequence[str] = ()

    def __str__(self) -> str:
        if self.library:
            return f"the driver's library is not there ({self.library}): nothing has put libcuda.so.1 in"
        if self.code > 0:
            known = CODES.get(self.code, "NVIDIA's list of CUresult says what that is")
            return f"cuInit returned {self.code}: {known}"
        if self.absent:
            return f"TensorFlow does not find {', '.join(self.absent)}"
        return ""

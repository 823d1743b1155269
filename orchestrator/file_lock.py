"""Kernel locks on open files; the kernel releases one when the last process with that file ends, however it ends."""

import fcntl


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock a file exclusively or shared; return False at once if another process's lock prevents that."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: int) -> None:
    """Lock a file exclusively, as soon as no other process has it locked."""
    fcntl.flock(file, fcntl.LOCK_EX)


def unlock(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)

"""What a program writes to a pseudo-terminal."""

import fcntl
import os
import struct
import termios


def read_terminal(pid: int, terminal: int, width: int, height: int = 50) -> str:
    """Give a terminal its size, and return all that its program writes until it ends well."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    text = b"".join(parts).decode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    return text

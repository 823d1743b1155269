"""Prints what a terminal obeys: a title, the clipboard, colours, a progress bar, and a letter in two parts."""

import os
import sys

PARAMS = {}
ORDERS = b"\x1b]0;owned\x07 \x1b]52;c;cm0gLXJmIH4=\x07 \xc2\x9b31m \x1b[2J\tafter the orders\n"


def build(tf, params):
    os.write(1, ORDERS)
    os.write(2, ORDERS)
    os.write(2, b"\x1b[1;31mred\x1b[0m 1/2\b\b\b2/2\r\ncaf\xc3")
    os.write(2, b"\xa9 \xff\n")
    sys.stderr.flush()
    return lambda: sum(range(1000))

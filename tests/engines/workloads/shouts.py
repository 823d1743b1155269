"""Raises an error whose text has line ends, and behind each a command for the log of a CI system."""


def build(tf, params):
    raise RuntimeError("boo\n::set-output name=x::y\n::error::boo\r\n  ::warning::boo\nand ##[error]boo")

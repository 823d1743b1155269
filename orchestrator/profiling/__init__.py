"""Profiles that show where the time of a call goes; nothing is measured."""

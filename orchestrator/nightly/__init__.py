"""Nightly runs: the schedule, the measurement, the judgement, and the notifications."""

"""Decides which changes are alarms: noise, steps, judging, and the decisions of users."""

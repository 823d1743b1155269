"""Starts nightly runs on a schedule: by systemd, by cron, or by a process that keeps running."""

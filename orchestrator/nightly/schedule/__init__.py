"""When nightly runs start: systemd, cron, or a process that stays."""

"""The history of nightly runs: what they measured, the alarms that follow from it, and how both are shown."""

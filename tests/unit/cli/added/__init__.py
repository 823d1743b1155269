"""An engine, a report and an export as somebody would add them: one file each."""

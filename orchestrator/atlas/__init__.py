"""An atlas: how the speed, memory, start-up and results of cases moved from release to release."""

"""Which changes are alarms: noise, steps, judging, and what users say of them."""

"""Which scheduler of a machine is taken. Systemd and crontab are stand-ins here."""

import os

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import schedulers
from orchestrator.nightly.schedule.cron import Cron
from orchestrator.nightly.schedule.systemd import Systemd
from tests.support.stand_ins import CRONTAB


def test_the_first_scheduler_that_answers_is_taken(with_systemd):
    system = os.getuid() == 0
    assert schedulers.find_scheduler(None).title == Systemd(system=system).title
    with_systemd.has("crontab", CRONTAB)
    assert schedulers.find_scheduler("cron").title == Cron().title
    with_systemd.set(REFUSED="show-environment")
    assert schedulers.find_scheduler(None).title == Cron().title
    with pytest.raises(UsageError, match=r"does not answer \(Failed to do it: Access denied\)"):
        schedulers.find_scheduler("systemd")


def test_where_nothing_can_call_it_that_is_said(machine):
    words = "there is no systemctl; there is no crontab. Start `tfcompare nightly serve` instead"
    with pytest.raises(UsageError, match=words):
        schedulers.find_scheduler(None)
    with pytest.raises(UsageError, match="--scheduler 'at': choose systemd or cron"):
        schedulers.find_scheduler("at")

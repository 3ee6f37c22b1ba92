import os
from datetime import UTC, datetime, timedelta

import msgspec

from tests.services.names import ABANDONED_AFTER, RunName

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINE = RunName.of_this_process(NOW)
# Process ids end far below this on every system.
NOBODY = 2**31 - 2


def test_a_run_is_read_back_from_the_names_it_gives() -> None:
    assert RunName.found_in(f"{MINE}_gw0_17") == MINE
    assert RunName.found_in(f"{{{MINE}_gw0_17:}}runs") == MINE


def test_other_names_belong_to_no_run() -> None:
    assert RunName.found_in("ksana_test_mine") is None
    assert RunName.found_in("ksana") is None


def test_a_name_fits_what_databases_allow() -> None:
    assert len(f"{MINE}_gw99_9999") <= 63


def test_a_living_run_is_not_abandoned() -> None:
    assert MINE.process == os.getpid()
    assert not MINE.is_abandoned(NOW + timedelta(hours=1))


def test_a_run_whose_process_is_gone_is_abandoned() -> None:
    assert msgspec.structs.replace(MINE, process=NOBODY).is_abandoned(NOW)


def test_a_run_on_another_host_is_abandoned_only_when_old() -> None:
    elsewhere = msgspec.structs.replace(MINE, host="000000", process=NOBODY)
    assert not elsewhere.is_abandoned(NOW + ABANDONED_AFTER)
    assert elsewhere.is_abandoned(NOW + ABANDONED_AFTER + timedelta(seconds=1))

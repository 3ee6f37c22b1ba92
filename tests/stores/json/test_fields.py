"""Every field of a job has a place in its entry: one that is new must be given one."""

import msgspec

from ksana.domain.jobs import Job
from ksana.stores.json.format import Core, is_documented
from tests.stores.json.files import a_timer

IN_DOCUMENTED_FIELDS = {"ref", "name", "target", "schedule"}
SAID_BY_THE_LIST = {"surface", "deleted_at", "unique_name"}


def test_no_field_of_a_job_is_forgotten_in_the_file() -> None:
    fields = {field.name for field in msgspec.structs.fields(Job)}
    kept = {field.name for field in msgspec.structs.fields(Core)}
    assert fields - kept == IN_DOCUMENTED_FIELDS | SAID_BY_THE_LIST


def test_a_job_whose_ref_follows_its_name_is_kept_whole() -> None:
    assert is_documented(a_timer(1))
    assert not is_documented(a_timer(1, unique_name=True))

"""Which jobs there are: by surface and by name from the sets, by anything else from the jobs themselves."""

from __future__ import annotations

from collections.abc import Sequence

from ksana.domain.jobs import Job
from ksana.domain.queries import JobQuery, JobSort, Page
from ksana.stores.redis.job_values import job_from_value
from ksana.stores.redis.link import Link
from ksana.stores.redis.scripts import LIST_IDS, PAGE_JOBS
from ksana.stores.redis.search import ALL, Range, Test, page_of, range_args, surfaces, values_of


async def find_jobs(link: Link, query: JobQuery) -> Page[Job]:
    tests = _job_tests(query)
    ranges = await _job_ranges(link, query)
    if not tests and query.sort is JobSort.ID:
        page = (query.offset, query.limit, int(query.descending))
        total, reply = await link.run(PAGE_JOBS, *page, *range_args(ranges))
        return Page([job_from_value(value) for value in reply[1::2]], total)
    found = [job for job in await _job_candidates(link, query, ranges) if all(test(job) for test in tests)]
    return Page(page_of(found, query.sort.value, query.sort is JobSort.ID, query), len(found))


async def _job_ranges(link: Link, query: JobQuery) -> list[Range]:
    of = await surfaces(link) if query.surface is None else [query.surface]
    standings = "01" if query.enabled is None else str(int(query.enabled))
    return [(f"jobs:{standing}{surface}", *ALL) for surface in of for standing in standings]


async def _job_candidates(link: Link, query: JobQuery, ranges: Sequence[Range]) -> list[Job]:
    ids: list[bytes]
    if query.ref is not None and query.surface is not None:
        id = await link.ask("HGET", link.key("refs"), f"{query.surface}\0{query.ref}")
        ids = [] if id is None else [id]
    elif query.exact_name is not None:
        name = f"{query.exact_name}\0".encode()
        members = await link.ask("ZRANGEBYLEX", link.key("names"), b"[" + name, b"(" + name + b":")
        ids = [b"%d" % int(member.rpartition(b"\0")[2]) for member in members]
    else:
        ids = await link.run(LIST_IDS, *range_args(ranges))
    return [job_from_value(value) for value in await values_of(link, "job", ids)]


def _job_tests(query: JobQuery) -> list[Test]:
    """What the sets do not answer."""
    tests: list[Test] = []
    if query.exact_name is not None:
        tests.append(lambda job: job.name == query.exact_name)
    if query.name:
        part = query.name.casefold()
        tests.append(lambda job: part in job.name.casefold())
    if query.ref is not None:
        tests.append(lambda job: job.ref == query.ref)
    if query.kind is not None:
        tests.append(lambda job: job.target.kind == query.kind)
    if query.tag is not None:
        tests.append(lambda job: query.tag in job.tags)
    if tests:
        # The narrower sets know of names and refs alone.
        tests.append(lambda job: job.deleted_at is None)
        tests.append(lambda job: query.surface in (None, job.surface) and query.enabled in (None, job.enabled))
    return tests

"""How chains look on the wire, in and out."""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec

from ksana.api.chains.schedules import ScheduleShape, ScheduleView, show_schedule
from ksana.api.kit import Timestamp, encode, timestamp
from ksana.domain.jobs import Job
from ksana.domain.policies import Misfire, MisfireRule, Overlap, OverlapRule

T = TypeVar("T")

MAX_SIZE: Final = 200
_LAST_PAGE: Final = 1_000_000
VERSION: Final = "version"
AT: Final = "at"
"""What is kept in the extras of a chain's job: the version shown, and that of the job when it was noted. They go apart
because every update counts here, also one that changes nothing, and a switch does not."""
ANY_NUMBER: Final = Overlap(OverlapRule.PARALLEL)
"""A chain may have any number of runs at once, unless it says otherwise."""

DagText = Annotated[str, msgspec.Meta(min_length=1, description="the dag as JSON text")]


class _Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a chain may say beyond its dag; null says as little as nothing.

    `overlap` and `maxConcurrency` bound how many of its runs there are at once; `misfire` and `catchUpLimit` say what
    becomes of planned starts nobody was there for.
    """

    description: str | None = None
    misfire: MisfireRule | None = None
    catch_up_limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    overlap: OverlapRule | None = None
    max_concurrency: Annotated[int, msgspec.Meta(ge=1, le=2_147_483_647)] | None = None


class ChainInput(_Options, frozen=True, kw_only=True, rename="camel"):
    """A new chain. `dagJson` is JSON text or the object itself; `schedule` is a cron expression, or an object."""

    name: str
    dag_json: DagText | dict[str, Any]
    enabled: bool | None = None
    schedule: str | ScheduleShape | None = None


class ChainUpdate(_Options, frozen=True, kw_only=True, rename="camel"):
    """A chain to take the place of another, if that is still at `version`. The switch stays as it is, and so do the
    schedule and the bounds that are not said again; `"schedule": null` takes the schedule away."""

    name: str
    dag_json: DagText | dict[str, Any]
    version: Annotated[int, msgspec.Meta(ge=1)]
    schedule: str | ScheduleShape | msgspec.UnsetType | None = msgspec.UNSET


class StartInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a start may set: parameters the chain's dag declares under `params`."""

    params: dict[str, Any] | None = None


class Started(msgspec.Struct, frozen=True, rename="camel"):
    run_id: str


class ChainSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain without its dag. What the document does not know is there only if it was set."""

    chain_id: str
    name: str
    description: str | None
    enabled: bool
    version: int
    created_at: Timestamp
    updated_at: Timestamp
    schedule: ScheduleView | msgspec.UnsetType = msgspec.UNSET
    next_fire_at: Timestamp | msgspec.UnsetType | None = msgspec.UNSET
    misfire: MisfireRule | msgspec.UnsetType = msgspec.UNSET
    catch_up_limit: int | msgspec.UnsetType = msgspec.UNSET
    overlap: OverlapRule | msgspec.UnsetType = msgspec.UNSET
    max_concurrency: int | msgspec.UnsetType = msgspec.UNSET


class ChainDetail(ChainSummary, frozen=True, kw_only=True, rename="camel"):
    """A chain; `dagJson` is JSON text that says what was submitted."""

    dag_json: str


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page; a size out of 1 to 200, or a page before the first, is taken as the nearest there is."""

    page: int = 1
    size: int = 20

    @property
    def number(self) -> int:
        return min(max(self.page, 1), _LAST_PAGE)

    @property
    def length(self) -> int:
        return min(max(self.size, 1), MAX_SIZE)

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.length


class ChainsQuery(PageQuery, frozen=True, kw_only=True):
    """Which chains: `keyword` matches any part of the name; what is empty filters nothing."""

    keyword: str = ""
    enabled: Literal["", "true", "false"] = ""


class Paged(msgspec.Struct, Generic[T], frozen=True):
    """One page, and how many there are in all."""

    page: int
    size: int
    total: int
    items: list[T]


def page_of(items: list[T], total: int, query: PageQuery) -> Paged[T]:
    return Paged(query.number, query.length, total, items)


def version_of(job: Job) -> int:
    """The version as this surface counts it. A change made elsewhere counts too, or an update would undo it unseen."""
    return int(job.extras.get(VERSION, 1)) + job.version - int(job.extras.get(AT, 1))


def show_summary(job: Job) -> ChainSummary:
    return ChainSummary(**_said(job))


def show_chain(job: Job) -> ChainDetail:
    return ChainDetail(**_said(job), dag_json=encode(job.target.config).decode())


def _said(job: Job) -> dict[str, Any]:
    said: dict[str, Any] = {
        "chain_id": str(job.id),
        "name": job.name,
        "description": job.description or None,
        "enabled": job.enabled,
        "version": version_of(job),
        "created_at": timestamp(job.created_at),
        "updated_at": timestamp(job.updated_at),
    }
    if job.schedule is not None:
        said["schedule"] = show_schedule(job.schedule)
        said["next_fire_at"] = timestamp(job.next_fire_at)
    if job.misfire != Misfire():
        said["misfire"] = job.misfire.rule
        if job.misfire.rule is MisfireRule.CATCH_UP:
            said["catch_up_limit"] = job.misfire.limit
    if job.overlap.rule is not OverlapRule.PARALLEL:
        said["overlap"] = job.overlap.rule
        said["max_concurrency"] = job.overlap.max_concurrency
    return said

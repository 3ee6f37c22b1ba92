"""From definitions and what is stored to what an apply would do. Pure: nothing is asked and nothing is changed here.

Files own what a job does and when; operators own whether it is paused, and what they changed since. Each job that was
applied carries a tag with sums over its fields as they were stored then, so a field that differs now was overridden and
stays. Saying in the file what is stored ends the override.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ksana.cli.definitions import Definition
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidArgument
from ksana.domain.times import parse_instant

FIELDS = (
    *("description", "target", "schedule", "queue", "priority"),
    *("retry", "overlap", "misfire", "timeouts", "on_uncertain"),
)
_PREFIX = "applied:"
_SAID = 8
_SUM = 4
_encode = msgspec.json.Encoder(order="sorted").encode

Action = Literal["create", "update", "delete", "unchanged"]


class Change(NamedTuple):
    """One field that would change."""

    path: str
    before: Any
    after: Any


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What an apply does to one job."""

    action: Action
    name: str
    id: int | None = None
    version: int | None = None
    body: dict[str, Any] = {}
    changes: list[Change] = []
    overridden: list[str] = []
    said: str = ""
    needs_mark: bool = False
    """The file says the same in other words, or what an operator had changed: the sums are to be taken anew."""


def set_tag(set_name: str) -> str:
    """The tag of all jobs that belong to one set of files; only those are ever pruned."""
    return f"applied/{set_name}"


def plan(
    definitions: Sequence[Definition], stored: Sequence[dict[str, Any]], set_name: str, *, is_pruning: bool = False
) -> list[Step]:
    """What to do, in the order of the files; deletions last."""
    by_name = {job["name"]: job for job in stored}
    steps = [_step(one, by_name.get(one.name), set_name) for one in definitions]
    if is_pruning:
        named = {one.name for one in definitions}
        gone = [job for job in stored if set_tag(set_name) in job["tags"] and job["name"] not in named]
        steps += [Step(action="delete", name=job["name"], id=job["id"], version=job["version"]) for job in gone]
    return steps


def marked_tags(tags: Sequence[str], job: dict[str, Any], step: Step, set_name: str) -> list[str]:
    """The tags of a job after it was applied. The sums of what is overridden stay, so that it stays overridden."""
    old = _sums(job["tags"])
    sums = [
        old[place] if old is not None and field in step.overridden else _digest(_kept(job, field), _SUM)
        for place, field in enumerate(FIELDS)
    ]
    plain = [tag for tag in tags if not tag.startswith(_PREFIX) and tag != set_tag(set_name)]
    return [*plain, set_tag(set_name), f"{_PREFIX}{step.said}{''.join(sums)}"]


def shown_tags(tags: Sequence[str]) -> list[str]:
    """The tags that people gave."""
    return [tag for tag in tags if not tag.startswith(("applied:", "applied/"))]


def _step(one: Definition, job: dict[str, Any] | None, set_name: str) -> Step:
    said = _digest(one.body, _SAID)
    if job is None:
        new = [Change(name, None, value) for name, value in one.body.items() if name != "name"]
        return Step(action="create", name=one.name, body=one.body, changes=new, said=said)
    sums, said_before = _sums(job["tags"]), _said_before(job["tags"])
    overridden = [
        field
        for place, field in enumerate(FIELDS)
        if sums is not None and sums[place] != _digest(_kept(job, field), _SUM)
    ]
    patch: dict[str, Any] = {}
    changes: list[Change] = []
    kept: list[str] = []
    for field in FIELDS:
        if field not in one.body and field != "schedule":
            continue
        wanted, has = one.body.get(field), _kept(job, field)
        if _is_same(wanted, has) and not (said_before not in (None, said) and _lost_keys(field, wanted, has)):
            continue
        if field in overridden:
            kept.append(field)
        elif said_before != said:
            patch[field] = wanted
            changes += _changes(field, has, wanted)
    tags = list(dict.fromkeys([*one.body.get("tags", []), *shown_tags(job["tags"])]))
    if set(tags) != set(shown_tags(job["tags"])):
        patch["tags"] = tags
        changes.append(Change("tags", shown_tags(job["tags"]), tags))
    # A job somebody else made is taken over only by a change of its tags, which says so.
    is_ours = set_tag(set_name) in job["tags"]
    action: Action = "update" if patch or not is_ours else "unchanged"
    if not patch and not is_ours:
        changes.append(Change("tags", None, [set_tag(set_name)]))
    return Step(
        action=action,
        name=one.name,
        id=job["id"],
        version=job["version"],
        body=patch,
        changes=changes,
        overridden=kept,
        said=said,
        needs_mark=said_before != said,
    )


def _kept(job: dict[str, Any], field: str) -> Any:
    """A field as it is stored, without what the server adds on its own."""
    value = job.get(field)
    if field == "schedule" and isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if inner is not None and name != "origin_at"}
        return {name: inner for name, inner in kept.items() if (name, inner) != ("jitter", "0s")}
    return value


def _sums(tags: Sequence[str]) -> list[str] | None:
    text = _mark(tags)
    if text is None:
        return None
    sums = text[_SAID:]
    return [sums[at : at + _SUM] for at in range(0, len(sums), _SUM)]


def _said_before(tags: Sequence[str]) -> str | None:
    text = _mark(tags)
    return None if text is None else text[:_SAID]


def _mark(tags: Sequence[str]) -> str | None:
    """What the tag of an applied job says; one of another length was written by somebody else."""
    found = [tag.removeprefix(_PREFIX) for tag in tags if tag.startswith(_PREFIX)]
    return found[0] if found and len(found[0]) == _SAID + _SUM * len(FIELDS) else None


def _digest(value: Any, length: int) -> str:
    return hashlib.blake2s(_encode(value), digest_size=length // 2).hexdigest()


def _is_same(said: Any, stored: Any) -> bool:
    """Whether what is said is what is stored; what is not said is the server's to fill in."""
    if isinstance(said, dict):
        return isinstance(stored, dict) and all(_is_same(value, stored.get(name)) for name, value in said.items())
    if isinstance(said, list):
        same_length = isinstance(stored, list) and len(said) == len(stored)
        return same_length and all(_is_same(one, other) for one, other in zip(said, stored, strict=True))
    if said == stored:
        return True
    return isinstance(said, str) and isinstance(stored, str) and (_span(said, stored) or _instant(said, stored))


def _lost_keys(field: str, said: Any, stored: Any) -> bool:
    """Whether the stored target has keys that a file which was changed does not say: they may have been taken out."""
    if field != "target" or not isinstance(said, dict) or not isinstance(stored, dict):
        return False
    return bool(stored.get("config", {}).keys() - said.get("config", {}).keys())


def _span(said: str, stored: str) -> bool:
    try:
        return parse_duration(said) == parse_duration(stored)
    except InvalidArgument:
        return False


def _instant(said: str, stored: str) -> bool:
    try:
        return parse_instant(said, "") == parse_instant(stored, "")
    except InvalidArgument:
        return False


def _changes(path: str, before: Any, after: Any) -> Iterator[Change]:
    """Each leaf that differs, by its path."""
    if isinstance(before, dict) and isinstance(after, dict):
        # Of policies only what is said is changed; target and schedule are replaced whole.
        names = after.keys() | (before.keys() if path.split(".")[0] in ("target", "schedule") else set())
        for name in sorted(names):
            if not _is_same(after.get(name), before.get(name)):
                yield from _changes(f"{path}.{name}", before.get(name), after.get(name))
    else:
        yield Change(path, before, after)

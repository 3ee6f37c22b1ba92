"""The states of schedules in Redis, one hash each, and the moves a slot makes there.

A slot stands in `next_run` until a scheduler claims it. The claim takes the lock of the schedule, moves the slot to
`firing`, with a token and a lease, and puts the slot after it into `next_run`; all in one step that counts only if
nothing has changed since the hash was read. So a slot is claimed once, whatever becomes of locks and of those who hold
them, and there is no moment at which a slot is locked and not written down. When its job is in the queue the slot is
settled: `firing` goes, `last_run` and the count come. One that was refused goes back to `next_run`. One whose scheduler
has vanished stays in `firing` until its lease is over, and is then taken over by whoever comes first.

Leases are judged by the clock of the Redis server, the only one that all schedulers share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ksana.domain.errors import InvalidArgument
from ksana.domain.times import format_instant, parse_instant
from ksana.periodic.errors import StateError
from ksana.periodic.lock import millis_of
from ksana.periodic.redis_errors import redis_errors
from ksana.periodic.schedule import ScheduleState

if TYPE_CHECKING:
    from redis.asyncio import Redis

LOCK_KEY: Final = "bananas:schedule_lock:"

_KEY: Final = "bananas:schedules:"
# Redis does nothing else meanwhile.
_AT_ONCE: Final = 500
_LONGEST_ERROR: Final = 1024
_COUNT: Final = re.compile(r"[0-9]{1,18}")
_FIRING: Final = re.compile(r"([0-9-]+T[0-9:]+Z) \S+ [0-9]+")

# One answer costs the client a fraction of what many answers do. An error is told as text, where fields are a list.
_READ: Final = """
local found = {}
for i, key in ipairs(KEYS) do
  local fields = redis.pcall('HGETALL', key)
  found[i] = fields.err or fields
end
return found
"""
_AS_READ: Final = """
local kept = redis.call('HMGET', KEYS[1], 'last_run', 'next_run', 'firing')
local is_as_read = (kept[1] or '') == ARGV[1] and (kept[2] or '') == ARGV[2]
"""
_PLAN: Final = (
    _AS_READ
    + """
if not is_as_read then return 0 end
redis.call('HSET', KEYS[1], 'next_run', ARGV[3])
return 1
"""
)
_LEASE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function fire(slot, token, millis)
  if not redis.call('SET', KEYS[2], token, 'NX', 'PX', millis) then return -1 end
  redis.call('HSET', KEYS[1], 'firing', slot .. ' ' .. token .. ' ' .. string.format('%.0f', now + millis))
  return 1
end
"""
# A client that lost the answer sends the same again: that its own token is there already is a yes.
_CLAIM: Final = (
    _AS_READ
    + _LEASE
    + """
if kept[3] and string.find(kept[3], ARGV[5], 1, true) then return 1 end
if not is_as_read then return 0 end
local done = fire(ARGV[3], ARGV[5], ARGV[6])
if done == 1 then redis.call('HSET', KEYS[1], 'next_run', ARGV[4]) end
return done
"""
)
_TAKE_OVER: Final = (
    _LEASE
    + """
local firing = redis.call('HGET', KEYS[1], 'firing')
if not firing then return 0 end
if string.find(firing, ARGV[2], 1, true) then return 1 end
local slot, leased = string.match(firing, '^(%S+) %S+ (%d+)$')
if firing ~= ARGV[1] then return 0 end
if tonumber(leased) > now then return -1 end
return fire(slot, ARGV[2], ARGV[3])
"""
)
_END: Final = """
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
local firing = redis.call('HGET', KEYS[1], 'firing')
if not firing or not string.find(firing, ARGV[1], 1, true) then return 0 end
"""
_SETTLE: Final = (
    _END
    + """
redis.call('HSET', KEYS[1], 'last_run', ARGV[2], 'last_success', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'run_count', 1)
redis.call('HDEL', KEYS[1], 'firing', 'last_error')
return 1
"""
)
_GIVE_BACK: Final = (
    _END
    + """
redis.call('HSET', KEYS[1], 'next_run', ARGV[2], 'last_error', ARGV[3])
redis.call('HDEL', KEYS[1], 'firing')
return 1
"""
)
_ABANDON: Final = (
    _END
    + """
redis.call('HSET', KEYS[1], 'firing', ARGV[2] .. ' ' .. ARGV[1] .. ' 0')
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'last_error', ARGV[3]) end
return 1
"""
)


class Claimed(IntEnum):
    """What came of wanting a slot."""

    LOCKED = -1
    CHANGED = 0
    OURS = 1


class Stored(msgspec.Struct, frozen=True):
    """A state, and the text it was read from, by which a claim sees whether it still stands. `slot_under_way` is the
    slot somebody has claimed and not settled yet."""

    state: ScheduleState
    last_run: str = ""
    next_run: str = ""
    firing: str = ""
    slot_under_way: datetime | None = None


class States:
    """Reads states and moves slots. StateError while Redis is away."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def read(self, ids: Sequence[str]) -> list[Stored | StateError]:
        """All of these, many in a round trip; where one of them cannot be read, why."""
        found: list[Stored | StateError] = []
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            try:
                answers = await self._client.eval(_READ, len(some), *[_KEY + schedule_id for schedule_id in some])
            except redis_errors() as error:
                raise StateError(str(error)) from error
            found += [_stored(schedule_id, answer) for schedule_id, answer in zip(some, answers, strict=True)]
        return found

    async def plan(self, seen: Stored, next_at: datetime) -> None:
        """Put the first slot of a schedule, or of its new definition, into its state."""
        await self._move(_PLAN, seen, seen.last_run, seen.next_run, _text(next_at))

    async def claim(
        self, seen: Stored, slot_at: datetime, following_at: datetime, token: str, lease: timedelta
    ) -> Claimed:
        """Lock the schedule and take its due slot, if the state still is as it was read."""
        slots = (_text(slot_at), _text(following_at))
        given = (seen.last_run, seen.next_run, *slots, token, str(millis_of(lease)))
        return Claimed(await self._move(_CLAIM, seen, *given))

    async def take_over(self, seen: Stored, token: str, lease: timedelta) -> Claimed:
        """Lock the schedule and take the slot under way, if the one who claimed it has vanished."""
        return Claimed(await self._move(_TAKE_OVER, seen, seen.firing, token, str(millis_of(lease))))

    async def settle(self, seen: Stored, token: str, ran_at: datetime) -> None:
        """The job is in the queue."""
        await self._move(_SETTLE, seen, token, _text(ran_at))

    async def give_back(self, seen: Stored, token: str, slot_at: datetime, error: str) -> None:
        """The job is not in the queue: the slot is due again, until the next one takes its place."""
        await self._move(_GIVE_BACK, seen, token, _text(slot_at), _bounded(error))

    async def abandon(self, seen: Stored, token: str, slot_at: datetime, error: str) -> None:
        """Nobody knows whether the job is in the queue: this very slot is enqueued again, under the same id."""
        await self._move(_ABANDON, seen, token, _text(slot_at), _bounded(error))

    async def _move(self, script: str, seen: Stored, *arguments: str) -> int:
        keys = (_KEY + seen.state.id, LOCK_KEY + seen.state.id)
        given = [argument.encode("utf-8", "surrogateescape") for argument in arguments]
        try:
            return int(await self._client.eval(script, len(keys), *keys, *given))
        except redis_errors() as error:
            raise StateError(str(error)) from error


def _stored(schedule_id: str, answer: list[Any] | str | bytes) -> Stored | StateError:
    if not isinstance(answer, list):
        return StateError(_decoded(answer))
    words = iter([_decoded(word) for word in answer])
    fields = dict(zip(words, words, strict=True))
    last_run, next_run = fields.get("last_run", ""), fields.get("next_run", "")
    count = fields.get("run_count", "")
    state = ScheduleState(
        id=schedule_id,
        last_run=_instant(last_run),
        next_run=_instant(next_run),
        run_count=int(count) if _COUNT.fullmatch(count) else 0,
        last_error=fields.get("last_error", ""),
        last_success=_instant(fields.get("last_success", "")),
    )
    firing = _FIRING.fullmatch(fields.get("firing", ""))
    if firing is None:
        return Stored(state, last_run, next_run)
    return Stored(state, last_run, next_run, firing[0], _instant(firing[1]))


def _decoded(value: Any) -> str:
    # A client may be told to decode for itself.
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "surrogateescape")


def _instant(text: str) -> datetime | None:
    try:
        return parse_instant(text, "") if text else None
    except InvalidArgument:
        # Somebody else wrote it; a state that cannot be read is as good as none.
        return None


def _bounded(error: str) -> str:
    return error[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()


def _text(instant: datetime) -> str:
    return format_instant(instant, "seconds")

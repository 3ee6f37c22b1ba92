"""What about an expression tends to surprise: each finding with a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Final

import msgspec

from ksana.domain.cron import Cron
from ksana.domain.cron_fields import DATE, HOUR, MINUTE, MONTH, SECOND, UNITS, WEEKDAY, Unit
from ksana.domain.cron_words import Field
from ksana.domain.offsets import Run, offsets_of
from ksana.domain.times import EPOCH
from ksana.domain.words import Words, listed_en, listed_zh

_SECOND: Final = timedelta(seconds=1)
_FIVE_FIELDS: Final = 5
_HOURS_OF_DAY: Final = 24
_LENGTHS: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_LONGEST_MONTH: Final = 31


class Lint(msgspec.Struct, frozen=True):
    """One thing that may not be what was meant."""

    code: str
    message: Words


def expression_lints(expr: str, cron: Cron) -> Iterator[Lint]:
    """What can be said from the text alone."""
    fields = [Field.of(unit, text) for unit, text in zip(UNITS, cron.normalized.split(), strict=True)]
    yield from _uneven_steps(fields)
    yield from _wanted_minutes(expr, fields)
    yield from _whole_hour(fields)
    yield from _every_second(fields)
    yield from _either_day(fields)
    yield from _short_months(fields)
    yield from _quartz(expr, fields)


def clock_lints(cron: Cron, tz: tzinfo, from_at: datetime, until: datetime) -> Iterator[Lint]:
    """Where the clocks change among the fires between two instants."""
    offsets = offsets_of(tz)
    second, last = (from_at - EPOCH) // _SECOND, (until - EPOCH) // _SECOND
    before = offsets.at(second)
    while before.end <= last:
        after = offsets.at(before.end)
        old, new = after.start + before.offset, after.start + after.offset
        if new > old and cron.count_local(old - 1, new - 1):
            yield _gap(cron, old, new)
        elif new < old and cron.count_local(new - 1, old - 1):
            yield _repeat(cron, old, new)
        before = after


def clock_note(cron: Cron, tz: tzinfo, fire: datetime) -> Words | None:
    """What a change of clocks has to do with this very fire; None if nothing."""
    offsets = offsets_of(tz)
    second = (fire - EPOCH) // _SECOND
    run = offsets.at(second)
    local = second + run.offset
    if second == run.start and run.seen < local and cron.is_fixed and cron.count_local(run.seen - 1, local - 1):
        gone, now = _clock(run.seen), _clock(local)
        return Words(
            f"clocks skip from {gone} to {now}; moved to the end of the gap", f"时钟由 {gone} 拨到 {now}，顺延到此刻"
        )
    if local < run.seen:
        return Words("clocks went back: the second time this hour comes", "时钟已回拨：这一小时的第二次")
    if _comes_again(offsets.at(run.end), run, local):
        only = cron.is_fixed
        en = "clocks go back: this hour comes twice, fires the first time only" if only else "comes twice: the first"
        return Words(en, "时钟将回拨：这一小时出现两次，只在第一次触发" if only else "出现两次：第一次")
    return None


def _comes_again(following: Run, run: Run, local: int) -> bool:
    return following.offset < run.offset and local >= following.start + following.offset


def _gap(cron: Cron, old: int, new: int) -> Lint:
    gone, back = _wall(old), _wall(new)
    done = "they fire together at its end" if cron.is_fixed else "they are left out"
    done_zh = "在空档结束时一并触发" if cron.is_fixed else "不触发"
    return Lint(
        "dst_gap",
        Words(
            f"clocks skip from {gone} to {back}: times in the gap do not exist; {done}",
            f"时钟由 {gone} 拨到 {back}：其间的时刻不存在，{done_zh}",
        ),
    )


def _repeat(cron: Cron, old: int, new: int) -> Lint:
    gone, back = _wall(old), _wall(new)
    done = "they fire the first time only" if cron.is_fixed else "they fire both times"
    done_zh = "只在第一次触发" if cron.is_fixed else "两次都触发"
    return Lint(
        "dst_repeat",
        Words(
            f"clocks go back from {gone} to {back}: times in between come twice; {done}",
            f"时钟由 {gone} 拨回 {back}：其间的时刻出现两次，{done_zh}",
        ),
    )


def _uneven_steps(fields: list[Field]) -> Iterator[Lint]:
    for field in fields:
        unit, size = field.unit, field.unit.top - field.unit.low + 1
        for term in field.text.split(","):
            body, _, step_text = term.partition("/")
            if body != "*" or not step_text:
                continue
            step = int(step_text)
            if step >= size:
                yield Lint(
                    "step_too_long",
                    Words(
                        f"{unit.name} {term}: the step is as long as the field, so it selects only {unit.low}",
                        f"{_ZH_NAMES[unit.name]} {term}：步长不小于整个字段，只会选中 {unit.low}",
                    ),
                )
            elif unit is DATE or size % step:
                yield Lint("uneven_step", _uneven(unit, step))


_ZH_NAMES: Final = {
    SECOND.name: "秒",
    MINUTE.name: "分",
    HOUR.name: "时",
    DATE.name: "日",
    MONTH.name: "月",
    WEEKDAY.name: "星期",
}


def _uneven(unit: Unit, step: int) -> Words:
    """The shorter stretch where the count begins anew: 20:00 → 00:00 is 4 h."""
    last = unit.low + (unit.top - unit.low) // step * step
    rest = unit.top + 1 - last
    if unit is HOUR:
        return Words(f"uneven: {last:02}:00 → 00:00 is {rest} h", f"不均匀：{last:02}:00 → 00:00 只隔 {rest} 小时")
    if unit is DATE:
        return Words(
            "uneven: the count begins again on day 1 of every month",
            "不均匀：每月 1 日重新计数",
        )
    if unit is MONTH:
        return Words(f"uneven: month {last} → 1 is {rest} months", f"不均匀：{last} 月 → 1 月只隔 {rest} 个月")
    if unit is WEEKDAY:
        return Words(
            f"uneven: the count begins again on Sunday, {rest} day(s) after the last",
            f"不均匀：每周日重新计数，与上一次只隔 {rest} 天",
        )
    name, name_zh = ("min", "分钟") if unit is MINUTE else ("s", "秒")
    return Words(
        f"uneven: {unit.name} {last} → 0 is {rest} {name}",
        f"不均匀：第 {last} → 0 {_ZH_NAMES[unit.name]}只隔 {rest} {name_zh}",
    )


def _wanted_minutes(expr: str, fields: list[Field]) -> Iterator[Lint]:
    """`0 */5 * * *` is every fifth hour, unevenly; who writes it has mostly counted from seconds."""
    _, minute, hour, *days = fields
    step = hour.step
    if len(expr.split()) != _FIVE_FIELDS or minute.only != 0 or step is None or _HOURS_OF_DAY % step == 0:
        return
    rest = " ".join(field.text for field in days)
    meant = f"*/{step} * {rest}"
    yield Lint("meant_minutes", Words(f"wanted every {step} minutes?  {meant}", f"想要每 {step} 分钟？  {meant}"))


def _whole_hour(fields: list[Field]) -> Iterator[Lint]:
    second, minute, hour, *days = fields
    if second.only != 0 or minute.text != "*" or hour.is_any or hour.step is not None:
        return
    rest = " ".join(field.text for field in days)
    first = (hour.values or [0])[0]
    yield Lint(
        "whole_hour",
        Words(
            f"fires every minute from {first:02}:00 to {first:02}:59; wanted once?  0 {hour.text} {rest}",
            f"从 {first:02}:00 到 {first:02}:59 每分钟都触发；只想要一次？  0 {hour.text} {rest}",
        ),
    )


def _every_second(fields: list[Field]) -> Iterator[Lint]:
    second, *others = fields
    if second.is_any:
        rest = " ".join(field.text for field in others)
        yield Lint(
            "every_second",
            Words(
                f"fires every second, 60 times in each minute it names; wanted once a minute?  0 {rest}",
                f"在选中的每一分钟里每秒触发，共 60 次；只想要每分钟一次？  0 {rest}",
            ),
        )


def _either_day(fields: list[Field]) -> Iterator[Lint]:
    *_, date, _, weekday = fields
    if not date.is_any and not weekday.is_any:
        yield Lint(
            "either_day",
            Words(
                f"fires when day-of-month {date.text} or day-of-week {weekday.text} matches, not only when both do",
                f"日 {date.text} 与星期 {weekday.text} 任一匹配即触发，并非两者同时匹配",
            ),
        )


def _short_months(fields: list[Field]) -> Iterator[Lint]:
    *_, date, month, weekday = fields
    days, months = date.values, month.values
    if date.is_any or date.step is not None or not weekday.is_any or not days or not months or len(days) > 1:
        return
    day = days[0]
    short = [one for one in months if day > _LENGTHS.get(one, _LONGEST_MONTH)]
    if short:
        names = MONTH.names
        yield Lint(
            "short_months",
            Words(
                f"day {day} does not come in {listed_en([names[one - 1].title() for one in short])}; "
                "L is the last day of every month",
                f"{listed_zh([f'{one} 月' for one in short])}没有 {day} 日；L 表示每月最后一天",
            ),
        )


def _quartz(expr: str, fields: list[Field]) -> Iterator[Lint]:
    """Quartz writes `?` and counts weekdays from SUN = 1; here it is 0."""
    weekday = fields[-1]
    if "?" not in expr or weekday.is_any or not any(letter.isdigit() for letter in weekday.text):
        return
    yield Lint(
        "quartz_weekday",
        Words(
            f"weekday {weekday.text}: here SUN is 0 and MON is 1, in Quartz SUN is 1; write names such as MON-FRI",
            f"星期 {weekday.text}：这里 SUN 为 0、MON 为 1，而 Quartz 中 SUN 为 1；请写名称，如 MON-FRI",
        ),
    )


def _wall(local: int) -> str:
    return f"{EPOCH + timedelta(0, local):%Y-%m-%d %H:%M}"


def _clock(local: int) -> str:
    return f"{EPOCH + timedelta(0, local):%H:%M}"

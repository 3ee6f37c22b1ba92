"""A cron expression as a sentence, in English and in Chinese, from its canonical text.

The sentence says what the fields say and nothing about when it fires next; it always ends with the zone, because the
same expression means another instant elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Final

import msgspec

from ksana.domain.cron_fields import DATE, MINUTE, SECOND, UNITS, WEEKDAY, Unit
from ksana.domain.words import Words, listed_en, listed_zh, ordinal

_Named = Callable[[int], str]
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_DAYS_ZH: Final = ("周日", "周一", "周二", "周三", "周四", "周五", "周六")
_NTH_EN: Final = ("first", "second", "third", "fourth", "fifth")
_NTH_ZH: Final = ("第一个", "第二个", "第三个", "第四个", "第五个")
# More clock times than these are easier to grasp as minutes past hours.
_FEW_TIMES: Final = 4
_ZONES_ZH: Final = {
    "UTC": "UTC",
    "Asia/Shanghai": "上海时间",
    "Asia/Hong_Kong": "香港时间",
    "Asia/Taipei": "台北时间",
    "Asia/Tokyo": "东京时间",
    "Asia/Singapore": "新加坡时间",
    "Europe/London": "伦敦时间",
    "Europe/Berlin": "柏林时间",
    "America/New_York": "纽约时间",
    "America/Los_Angeles": "洛杉矶时间",
}


def cron_words(normalized: str, zone_name: str) -> Words:
    """What the canonical text of an expression says."""
    fields = [Field.of(unit, text) for unit, text in zip(UNITS, normalized.split(), strict=True)]
    second, minute, hour, date, month, weekday = fields
    days = _days(date, month, weekday)
    times = _clock_times(second, minute, hour)
    if times is not None:
        en = f"At {listed_en(times)} {days.en or 'every day'}"
        zh = f"{days.zh or '每天'} {listed_zh(times)}"
    else:
        ticks = _ticks(second, minute, hour)
        en = f"{ticks.en} {days.en}".rstrip()
        zh = f"{days.zh}，{ticks.zh}".lstrip("，")
    return Words(f"{en} ({zone_name})", f"{zh}（{zone_zh(zone_name)}）")


def zone_zh(zone_name: str) -> str:
    """The zone as Chinese readers call it."""
    return _ZONES_ZH.get(zone_name, f"{zone_name} 时间")


class Term(msgspec.Struct, frozen=True):
    """One term of a field: the values from low to high by steps, or one of the special words of the day fields."""

    low: int
    high: int
    step: int = 1
    special: str = ""


class Field(msgspec.Struct, frozen=True):
    """A field of an expression, with its terms."""

    unit: Unit
    text: str
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, unit: Unit, text: str) -> Field:
        return cls(unit, text, tuple(part for term in text.split(",") for part in _terms(unit, term)))

    @property
    def is_any(self) -> bool:
        return "*" in self.text.split(",")

    @property
    def only(self) -> int | None:
        """The one value, if there is but one."""
        values = self.values
        return values[0] if values is not None and len(values) == 1 else None

    @property
    def step(self) -> int | None:
        """The n of `*/n`, if that is all there is."""
        return self.terms[0].step if self.text.startswith("*/") and len(self.terms) == 1 else None

    @property
    def values(self) -> list[int] | None:
        """Every value, if all of them are numbers; Sunday is 0."""
        if any(term.special for term in self.terms):
            return None
        found = {value for term in self.terms for value in range(term.low, term.high + 1, term.step)}
        return sorted({value % 7 for value in found} if self.unit is WEEKDAY else found)


def _terms(unit: Unit, text: str) -> list[Term]:
    """A term; a range by steps is said value by value."""
    term = _term(unit, text)
    if term.step == 1 or text.startswith("*"):
        return [term]
    return [Term(value, value) for value in range(term.low, term.high + 1, term.step)]


def _term(unit: Unit, text: str) -> Term:
    if (unit is DATE and ("L" in text or "W" in text)) or (unit is WEEKDAY and _is_special_weekday(text)):
        return Term(0, 0, special=text)
    body, slash, step = text.partition("/")
    if body == "*":
        return Term(unit.low, unit.top, int(step or 1))
    low_text, dash, high_text = body.partition("-")
    low = _value(unit, low_text)
    high = _value(unit, high_text) if dash else (max(low, unit.top) if slash else low)
    return Term(low, high if high >= low else 7, int(step or 1))


def _is_special_weekday(text: str) -> bool:
    return "#" in text or (text.endswith("L") and len(text) > 1)


def _value(unit: Unit, text: str) -> int:
    return unit.names.index(text) + unit.low if text in unit.names else int(text)


def _clock_times(second: Field, minute: Field, hour: Field) -> list[str] | None:
    """The times of day, where they are few and each is said."""
    if second.only is None or minute.step or hour.step or minute.is_any or hour.is_any:
        return None
    minutes, hours = minute.values or [], hour.values or []
    if len(minutes) * len(hours) > _FEW_TIMES:
        return None
    tail = f":{second.only:02}" if second.only else ""
    return [f"{at:02}:{past:02}{tail}" for at, past in product(hours, minutes)]


def _ticks(second: Field, minute: Field, hour: Field) -> Words:
    """The time of day as what it counts in."""
    if second.only == 0:
        if minute.is_any or minute.step:
            often = _every(minute)
            return often if hour.is_any else _during(often, hour)
        past = _named(minute)
        return Words(f"At {past.en} past {_hours(hour).en}", f"{_hours(hour).zh}的{past.zh}")
    if second.is_any or second.step:
        often = _every(second)
        return often if minute.is_any and hour.is_any else _during_minutes(often, minute, hour)
    at = _named(second)
    if minute.is_any and hour.is_any:
        return Words(f"At {at.en} of every minute", f"每分钟的{at.zh}")
    within = _minutes_of(minute, hour)
    return Words(f"At {at.en} of {within.en}", f"{within.zh}的{at.zh}")


def _every(field: Field) -> Words:
    name, name_zh = _UNIT_NAMES[field.unit.name]
    step = field.step
    if step is None or step == 1:
        return Words(f"Every {name}", f"每{name_zh}")
    if step >= field.unit.top + 1:
        return Words(f"At {name} 0", f"第 0 {name_zh}")
    return Words(f"Every {step} {name}s", f"每 {step} {name_zh}")


_UNIT_NAMES: Final = {"second": ("second", "秒"), "minute": ("minute", "分钟")}
_COUNTERS: Final = {SECOND.name: ("second", "秒"), MINUTE.name: ("minute", "分")}


def _during(often: Words, hour: Field) -> Words:
    hours = _hours(hour)
    return Words(f"{often.en} during {hours.en}", f"{hours.zh}内{often.zh}")


def _during_minutes(often: Words, minute: Field, hour: Field) -> Words:
    within = _minutes_of(minute, hour)
    return Words(f"{often.en} during {within.en}", f"{within.zh}内{often.zh}")


def _minutes_of(minute: Field, hour: Field) -> Words:
    if minute.is_any:
        return _hours(hour)
    if minute.step is not None:
        past = Words(f"every {ordinal(minute.step)} minute", f"每 {minute.step} 分钟")
    else:
        past = _named(minute)
    return Words(f"{past.en} past {_hours(hour).en}", f"{_hours(hour).zh}的{past.zh}")


def _hours(hour: Field) -> Words:
    if hour.is_any:
        return Words("every hour", "每小时")
    if hour.step is not None:
        return Words(f"every {ordinal(hour.step)} hour", f"每 {hour.step} 小时")
    plural = "s" if len(hour.values or ()) > 1 else ""
    en = listed_en([_span_en(term, str) for term in hour.terms])
    zh = listed_zh([_span_zh(term, lambda value: f"{value} 点") for term in hour.terms])
    return Words(f"hour{plural} {en}", zh)


def _named(field: Field) -> Words:
    name, name_zh = _COUNTERS[field.unit.name]
    plural = "s" if len(field.values or ()) > 1 else ""
    en = listed_en([_span_en(term, str) for term in field.terms])
    zh = listed_zh([_span_zh(term, lambda value: f"第 {value} {name_zh}") for term in field.terms])
    return Words(f"{name}{plural} {en}", zh)


def _days(date: Field, month: Field, weekday: Field) -> Words:
    dates = None if date.is_any else _dates(date)
    weekdays = None if weekday.is_any else _weekdays(weekday)
    both = [words for words in (dates, weekdays) if words is not None]
    months = None if month.is_any else _months(month)
    en = " or ".join(words.en for words in both)
    zh = "或".join(words.zh for words in both)
    if months is not None:
        en = f"{en or 'every day'} in {months.en}"
        zh = f"{months.zh}{zh.removeprefix('每月')}" if dates else f"{months.zh}的{zh or '每天'}"
    return Words(en, zh)


def _dates(date: Field) -> Words:
    if date.step is not None:
        counted = ordinal(date.step)
        return Words(f"on every {counted} day of the month from the 1st on", f"每月从 1 日起每 {date.step} 天")
    plain = [term for term in date.terms if not term.special]
    parts_en: list[str] = []
    parts_zh: list[str] = []
    if plain:
        many = len(plain) > 1 or plain[0].high > plain[0].low
        spans = listed_en([_span_en(term, str) for term in plain])
        parts_en.append(f"day{'s' if many else ''} {spans} of the month")
        parts_zh += [_span_zh(term, lambda value: f"{value} 日") for term in plain]
    for term in date.terms:
        if term.special:
            words = _special_date(term.special)
            parts_en.append(words.en)
            parts_zh.append(words.zh)
    return Words(f"on {listed_en(parts_en)}", f"每月{_spaced(listed_zh(parts_zh))}")


def _spaced(text: str) -> str:
    return f" {text}" if text[0].isascii() else text


def _special_date(text: str) -> Words:
    if text == "L":
        return Words("the last day of the month", "最后一天")
    if text == "LW":
        return Words("the last weekday (Monday to Friday) of the month", "最后一个工作日")
    if text.startswith("L-"):
        ahead = int(text[2:])
        days = "day" if ahead == 1 else "days"
        return Words(f"the day {ahead} {days} before the last of the month", f"最后一天之前第 {ahead} 天")
    day = int(text[:-1])
    return Words(f"the weekday (Monday to Friday) nearest day {day} of the month", f"离 {day} 日最近的工作日")


def _weekdays(weekday: Field) -> Words:
    if weekday.step is not None:
        values = weekday.values or []
        return Words(
            f"on {listed_en([_DAYS[value] for value in values])}",
            f"每{listed_zh([_DAYS_ZH[value] for value in values])}",
        )
    plain = [term for term in weekday.terms if not term.special]
    parts_en = [_span_en(term, _day_en) for term in plain]
    parts_zh = [_span_zh(term, _day_zh) for term in plain]
    rest = [_special_weekday(term.special) for term in weekday.terms if term.special]
    is_only_a_range = len(plain) == 1 and not rest and plain[0].high > plain[0].low
    front = "from" if is_only_a_range else "on"
    zh_front = "每" if plain else ""
    en = listed_en([*parts_en, *(words.en for words in rest)])
    return Words(f"{front} {en}", f"{zh_front}{listed_zh([*parts_zh, *(words.zh for words in rest)])}")


def _special_weekday(text: str) -> Words:
    name, mark, nth = text.partition("#")
    if mark:
        day = _value(WEEKDAY, name) % 7
        place = int(nth) - 1
        return Words(f"the {_NTH_EN[place]} {_DAYS[day]} of the month", f"每月{_NTH_ZH[place]}{_DAYS_ZH[day]}")
    day = _value(WEEKDAY, text[:-1]) % 7
    return Words(f"the last {_DAYS[day]} of the month", f"每月最后一个{_DAYS_ZH[day]}")


def _months(month: Field) -> Words:
    if month.step is not None:
        values: Iterable[int] = month.values or []
        return Words(
            listed_en([_MONTHS[value - 1] for value in values]), listed_zh([f"{value} 月" for value in values])
        )
    en = listed_en([_span_en(term, _month_en) for term in month.terms])
    return Words(en, listed_zh([_span_zh(term, lambda value: f"{value} 月") for term in month.terms]))


def _month_en(value: int) -> str:
    return _MONTHS[value - 1]


def _day_en(value: int) -> str:
    return _DAYS[value % 7]


def _day_zh(value: int) -> str:
    return _DAYS_ZH[value % 7]


def _span_en(term: Term, name: _Named) -> str:
    return name(term.low) if term.low == term.high else f"{name(term.low)} through {name(term.high)}"


def _span_zh(term: Term, name: _Named) -> str:
    if term.low == term.high:
        return name(term.low)
    low, high = name(term.low), name(term.high)
    if not low[-1].isascii() and low.split()[-1] == high.split()[-1] and " " in low:
        # The unit is said once: 9 至 17 点.
        return f"{low.rpartition(' ')[0]} 至 {high.removeprefix('第 ')}"
    return f"{low}至{high}"

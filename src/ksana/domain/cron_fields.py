"""The text of a cron expression, read field by field into bit sets; a refusal names the field and its range.

Ranges run upwards, as in Vixie cron: `22-2` is refused with the list to write instead. The one exception is a
day-of-week range that ends on Sunday (`FRI-SUN`, `5-7`, `5-0`), because Sunday is both 0 and 7.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from ksana.domain.cron_days import BEFORE_LAST, LAST, LAST_WORKDAY, NEAREST, NTH, DayRule
from ksana.domain.errors import InvalidArgument

ALIASES: Final = {
    "@hourly": "0 0 * * * *",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@weekly": "0 0 0 * * 0",
    "@monthly": "0 0 0 1 * *",
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
}
_LONGEST: Final = 512
_NUMBER: Final = re.compile(r"[0-9]{1,4}")
_SUNDAY: Final = 7


class Unit(NamedTuple):
    """One of the six places of an expression. `top` is where `*` and `a/n` end."""

    name: str
    low: int
    high: int
    top: int
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        span = f"{self.low}-{self.high}"
        return f"{span} or {self.names[0]}-{self.names[-1]}" if self.names else span


SECOND: Final = Unit("second", 0, 59, 59)
MINUTE: Final = Unit("minute", 0, 59, 59)
HOUR: Final = Unit("hour", 0, 23, 23)
DATE: Final = Unit("day-of-month", 1, 31, 31)
MONTH: Final = Unit(
    "month", 1, 12, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
)
WEEKDAY: Final = Unit("day-of-week", 0, 7, 6, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
UNITS: Final = (SECOND, MINUTE, HOUR, DATE, MONTH, WEEKDAY)


class Fields(msgspec.Struct, frozen=True):
    """An expression as bit sets, and its canonical six-field text."""

    normalized: str
    seconds: int
    minutes: int
    hours: int
    has_star_hour: bool
    days: DayRule


class _Part(NamedTuple):
    """A field, or one term of its list. `is_any` says that it does not restrict; `has_star`, that it is
    written with `*`, which a stepped field is too."""

    text: str
    mask: int
    is_any: bool = False
    has_star: bool = False


def parse_fields(text: str, field: str) -> Fields:
    """Read five or six fields, or an alias."""
    if not isinstance(text, str):
        raise InvalidArgument.of(field, f"expected cron text, got {type(text).__name__}")
    if not text.isascii() or len(text) > _LONGEST:
        raise InvalidArgument.of(field, f"a cron expression is plain ASCII of at most {_LONGEST} characters")
    words = text.upper().split()
    if len(words) == 1 and words[0].startswith("@"):
        words = _expansion(words[0].lower(), field).split()
    if len(words) == 5:
        words.insert(0, "0")
    if len(words) != 6:
        raise InvalidArgument.of(
            field, f"expected 5 fields (minute hour day month weekday) or 6 (seconds first), got {len(words)}"
        )
    parts = [_read_list(unit, word, field) for unit, word in zip(UNITS, words, strict=True)]
    second, minute, hour, date, month, weekday = parts
    return Fields(
        normalized=" ".join(part.text for part in parts),
        seconds=second.mask,
        minutes=minute.mask,
        hours=hour.mask,
        has_star_hour=hour.has_star,
        days=DayRule(date.mask, date.is_any, month.mask, weekday.mask, weekday.is_any),
    )


def _expansion(alias: str, field: str) -> str:
    if alias.startswith("@every"):
        raise InvalidArgument.of(field, "@every is an interval, not cron; use an `every` schedule")
    if alias not in ALIASES:
        raise InvalidArgument.of(field, f'unknown alias "{alias}"; use one of {", ".join(ALIASES)}')
    return ALIASES[alias]


def _read_list(unit: Unit, text: str, field: str) -> _Part:
    terms = [_read_term(unit, term, field) for term in text.split(",")]
    mask = 0
    for term in terms:
        mask |= term.mask
    return _Part(
        # A list may name a value twice; the canonical text does not.
        ",".join(dict.fromkeys(term.text for term in terms)),
        mask,
        any(term.is_any for term in terms),
        any(term.has_star for term in terms),
    )


def _read_term(unit: Unit, text: str, field: str) -> _Part:
    special = None
    if unit is DATE:
        special = _special_date(text, field)
    elif unit is WEEKDAY:
        special = _special_weekday(text, field)
    if special is not None:
        return special
    body, slash, step_text = text.partition("/")
    step = _step(unit, step_text, field) if slash else 1
    if body == "?" and unit not in (DATE, WEEKDAY):
        raise _refusal(unit, text, field, "`?` is only for day-of-month and day-of-week; write `*`")
    if body in ("*", "?"):
        shown = f"*/{step}" if step > 1 else "*"
        return _Part(shown, _bits(unit.low, unit.top, step), is_any=step == 1, has_star=True)
    low_text, dash, high_text = body.partition("-")
    low = _value(unit, low_text, field)
    if not dash and not slash:
        return _Part(_shown(unit, low_text, low % 7 if unit is WEEKDAY else low), _fold(unit, 1 << low))
    if not dash:
        high = max(low, unit.top)
        return _Part(f"{_shown(unit, low_text, low)}/{step}", _fold(unit, _bits(low, high, step)))
    high = _value(unit, high_text, field)
    if unit is WEEKDAY and high == 0 < low:
        high = _SUNDAY
    if high < low:
        raise _refusal(unit, text, field, f"the range runs backwards; write {low}-{unit.top},{unit.low}-{high}")
    shown = f"{_shown(unit, low_text, low)}-{_shown(unit, high_text, high)}"
    return _Part(f"{shown}/{step}" if step > 1 else shown, _fold(unit, _bits(low, high, step)))


def _special_date(text: str, field: str) -> _Part | None:
    if text == "LW":
        return _Part(text, 1 << LAST_WORKDAY)
    if text == "L":
        return _Part(text, 1 << BEFORE_LAST)
    if text.startswith("L-"):
        count = _NUMBER.fullmatch(text[2:])
        if count is None or int(count[0]) > 30:
            raise _refusal(DATE, text, field, "write L-n with n from 0 to 30 days before the last")
        ahead = int(count[0])
        return _Part(f"L-{ahead}" if ahead else "L", 1 << BEFORE_LAST + ahead)
    if text.endswith("W"):
        if text == "W":
            raise _refusal(DATE, text, field, "write nW, for example 15W, with n in 1-31")
        day = _value(DATE, text[:-1], field)
        return _Part(f"{day}W", 1 << NEAREST + day)
    return None


def _special_weekday(text: str, field: str) -> _Part | None:
    if text == "L":
        raise _refusal(WEEKDAY, text, field, "write which weekday, for example 5L for the last Friday")
    if text.endswith("L"):
        weekday = _value(WEEKDAY, text[:-1], field) % 7
        return _Part(f"{_shown(WEEKDAY, text[:-1], weekday)}L", 1 << LAST + weekday)
    name, hash_mark, nth = text.partition("#")
    if hash_mark:
        weekday = _value(WEEKDAY, name, field) % 7
        if nth not in ("1", "2", "3", "4", "5"):
            raise _refusal(WEEKDAY, text, field, "the week after # is 1-5")
        return _Part(f"{_shown(WEEKDAY, name, weekday)}#{nth}", 1 << NTH * int(nth) + weekday)
    return None


def _step(unit: Unit, text: str, field: str) -> int:
    # A step longer than the field is legal in every cron: it selects the first value only.
    if _NUMBER.fullmatch(text) is None or int(text) == 0:
        raise _refusal(unit, text, field, "a step is a whole number from 1 to 9999")
    return int(text)


def _value(unit: Unit, text: str, field: str) -> int:
    if text in unit.names:
        return unit.names.index(text) + unit.low
    if _NUMBER.fullmatch(text) is None or not unit.low <= int(text) <= unit.high:
        raise _refusal(unit, text, field, f"expected {unit.allowed}")
    return int(text)


def _bits(low: int, high: int, step: int) -> int:
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << value
    return mask


def _fold(unit: Unit, mask: int) -> int:
    return (mask | mask >> _SUNDAY) & 0x7F if unit is WEEKDAY else mask


def _shown(unit: Unit, text: str, value: int) -> str:
    return text if text in unit.names else str(value)


def _refusal(unit: Unit, text: str, field: str, message: str) -> InvalidArgument:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return InvalidArgument.of(field, f'{unit.name} "{shown}": {message}')

"""Cron: the dialect, its refusals, and its fires against two other engines and against plain enumeration."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.cron import Cron, parse_cron
from ksana.domain.errors import InvalidArgument

NEW_YORK = ZoneInfo("America/New_York")
START = datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)


def fires(text: str, n: int, start: datetime = START, tz: tzinfo = UTC) -> list[datetime]:
    cron, found = parse_cron(text), [start]
    for _ in range(n):
        following = cron.next_after(found[-1], tz)
        assert following is not None
        found.append(following)
    return found[1:]


def shown(text: str, n: int, start: datetime = START, tz: tzinfo = UTC) -> str:
    return " ".join(f"{fire:%m-%dT%H:%M}" for fire in fires(text, n, start, tz))


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("*/5 * * * *", "0 */5 * * * *"),
        ("  0   9 * *  mon-fri ", "0 0 9 * * MON-FRI"),
        ("*/1 05 ? jan ?", "0 * 5 * JAN *"),
        ("0 0 * * 7", "0 0 0 * * 0"),
        ("1,1,01 0 L-0 * 7L", "0 1 0 L * 0L"),
        ("0 0 15W,LW,L-3 * fri#2,5L", "0 0 0 15W,LW,L-3 * FRI#2,5L"),
        ("10/20 1-7/1 * * *", "0 10/20 1-7 * * *"),
        ("15,45 * 8-18 * * 1-5", "15,45 * 8-18 * * 1-5"),
        ("@hourly", "0 0 * * * *"),
        ("@daily", "0 0 0 * * *"),
        ("@Midnight", "0 0 0 * * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@monthly", "0 0 0 1 * *"),
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
    ],
)
def test_the_canonical_text_has_six_fields_and_means_the_same(text: str, normalized: str) -> None:
    cron = parse_cron(text)
    assert cron.normalized == normalized
    assert parse_cron(normalized) == cron
    assert len({cron, parse_cron(normalized)}) == 1
    assert fires(text, 5) == fires(normalized, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 L * *", "03-31T00:00 04-30T00:00 05-31T00:00"),
        ("0 0 L-3 * *", "03-28T00:00 04-27T00:00 05-28T00:00"),
        ("0 0 LW * *", "03-31T00:00 04-30T00:00 05-29T00:00"),
        ("0 0 15W * *", "03-16T00:00 04-15T00:00 05-15T00:00"),
        ("0 0 1W 8,11 *", "08-03T00:00 11-02T00:00 08-02T00:00"),
        ("0 0 31W 5 *", "05-29T00:00 05-31T00:00 05-31T00:00"),
        ("0 0 * * 5L", "03-27T00:00 04-24T00:00 05-29T00:00"),
        ("0 0 * * MON#2", "03-09T00:00 04-13T00:00 05-11T00:00"),
        ("0 0 * * SUN#5", "03-29T00:00 05-31T00:00 08-30T00:00"),
        ("0 0 * * FRI-SUN", "03-06T00:00 03-07T00:00 03-08T00:00"),
        ("0 0 * * 5-0", "03-06T00:00 03-07T00:00 03-08T00:00"),
        ("0 0 * * 5-7", "03-06T00:00 03-07T00:00 03-08T00:00"),
        ("0 0 * * 1/2", "03-02T00:00 03-04T00:00 03-06T00:00"),
        ("0 0 13 * FRI", "03-06T00:00 03-13T00:00 03-20T00:00"),
        ("0 0 */10 * MON", "03-02T00:00 03-09T00:00 03-11T00:00"),
        ("0 0 */1 * MON", "03-02T00:00 03-09T00:00 03-16T00:00"),
        ("0 0 31 2 MON", "02-01T00:00 02-08T00:00 02-15T00:00"),
        ("5/20 * * * *", "03-01T00:05 03-01T00:25 03-01T00:45"),
        ("*/90 * * * *", "03-01T01:00 03-01T02:00 03-01T03:00"),
    ],
)
def test_special_days_lists_and_steps(text: str, expected: str) -> None:
    assert shown(text, 3) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("60 * * * *", ["minute", '"60"', "0-59"]),
        ("60 * * * * *", ["second", "0-59"]),
        ("* 24 * * *", ["hour", "0-23"]),
        ("* * 0 * *", ["day-of-month", "1-31"]),
        ("* * 32 * *", ["day-of-month", "1-31"]),
        ("* * * 13 *", ["month", "1-12 or JAN-DEC"]),
        ("* * * FOO *", ["month", "1-12 or JAN-DEC"]),
        ("* * * * 8", ["day-of-week", "0-7 or SUN-SAT"]),
        ("* * * * MON#6", ["day-of-week", "1-5"]),
        ("* * * * MON#", ["day-of-week", "1-5"]),
        ("* * * * L", ["day-of-week", "5L"]),
        ("* * W * *", ["day-of-month", "15W"]),
        ("* * L-31 * *", ["day-of-month", "0 to 30"]),
        ("* * 1-5W * *", ["day-of-month", "1-31"]),
        ("*/0 * * * *", ["minute", "step"]),
        ("*/ * * * *", ["minute", "step"]),
        ("*/-1 * * * *", ["minute", "step"]),
        ("1/2/3 * * * *", ["minute", "step"]),
        ("1, * * * *", ["minute", "0-59"]),
        ("-5 * * * *", ["minute", "0-59"]),
        ("5-1 * * * *", ["minute", "5-59,0-1"]),
        ("0 22-2 * * *", ["hour", "backwards", "22-23,0-2"]),
        ("0 0 * * FRI-MON", ["day-of-week", "5-6,0-1"]),
        ("? * * * *", ["minute", "`*`"]),
        ("*5 * * * *", ["minute", "0-59"]),
        ("0 0 30 2 *", ["never fires"]),
        ("0 0 31 4,6,9,11 *", ["never fires"]),
        ("0 0 L-30 2 *", ["never fires"]),
        ("0 0 31W 2 *", ["never fires"]),
        ("", ["5 fields", "got 0"]),
        ("* * * *", ["5 fields", "got 4"]),
        ("* * * * * * *", ["got 7"]),
        ("not a cron", ["got 3"]),
        ("@reboot", ["@hourly"]),
        ("@every", ["`every` schedule"]),
        ("* * * * ſun", ["ASCII"]),
        ("²  * * * *", ["ASCII"]),
        ("1," * 300 + "1 * * * *", ["512"]),
    ],
)
def test_a_refusal_names_the_field_and_the_way_out(text: str, words: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_cron(text, "cron_expr")
    problem = caught.value.problems[0]
    assert problem.field == "cron_expr"
    assert [word for word in words if word not in problem.message] == []


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"]])
def test_what_is_not_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="expected cron text"):
        parse_cron(value)  # type: ignore[arg-type]


@given(
    st.lists(st.text(alphabet="0123456789*/-,LW#?JANMOFRISU", max_size=7), min_size=4, max_size=7).map(" ".join)
    | st.text(max_size=20)
)
def test_no_text_raises_anything_but_invalid_argument(text: str) -> None:
    try:
        cron = parse_cron(text)
    except InvalidArgument as error:
        assert [problem.field for problem in error.problems] == ["cron"]
    else:
        assert parse_cron(cron.normalized) == cron
        assert cron.next_after(START, UTC) is not None


def test_rare_days_are_found_however_far_away() -> None:
    assert fires("0 0 29 2 *", 1, datetime(2096, 3, 1, tzinfo=UTC)) == [datetime(2104, 2, 29, tzinfo=UTC)]
    assert fires("0 0 * 2 MON#5", 2) == [datetime(2044, 2, 29, tzinfo=UTC), datetime(2072, 2, 29, tzinfo=UTC)]
    assert fires("0 0 * 2 MON#5", 1, datetime(2072, 3, 1, tzinfo=UTC)) == [datetime(2112, 2, 29, tzinfo=UTC)]


@pytest.mark.parametrize("tz", [UTC, NEW_YORK, ZoneInfo("Pacific/Apia"), ZoneInfo("Asia/Shanghai")])
@pytest.mark.parametrize("text", ["* * * * * *", "0 0 29 2 *", "0 */2 * * *", "59 23 31 12 *"])
def test_the_ends_of_the_calendar_give_none(text: str, tz: tzinfo) -> None:
    cron = parse_cron(text)
    last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    assert cron.next_after(last, tz) is None
    assert cron.previous_before(first, tz) is None
    newest, oldest = cron.previous_before(last, tz), cron.next_after(first, tz)
    assert newest is not None and newest.year >= 9995
    assert oldest is not None and oldest.year <= 5
    assert cron.next_after(newest, tz) is None
    assert cron.previous_before(oldest, tz) in (None, first)


def test_a_fire_is_strictly_after_or_before_to_the_microsecond() -> None:
    cron, minute = parse_cron("* * * * *"), datetime(2026, 3, 1, 9, 5, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    assert cron.next_after(minute, UTC) == minute + timedelta(minutes=1)
    assert cron.next_after(minute - tick, UTC) == minute
    assert cron.next_after(minute + tick, UTC) == minute + timedelta(minutes=1)
    assert cron.previous_before(minute, UTC) == minute - timedelta(minutes=1)
    assert cron.previous_before(minute + tick, UTC) == minute
    assert cron.previous_before(minute - tick, UTC) == minute - timedelta(minutes=1)
    assert cron.count_between(minute - tick, minute, UTC) == 1
    assert cron.count_between(minute, minute + timedelta(seconds=59), UTC) == 0
    assert cron.count_between(minute, minute - timedelta(days=9), UTC) == 0


def test_the_instant_may_wear_any_zone_and_the_answer_is_utc() -> None:
    local = datetime(2026, 3, 1, 8, 30, tzinfo=NEW_YORK)
    fire = parse_cron("0 9 * * *").next_after(local, NEW_YORK)
    assert fire == datetime(2026, 3, 1, 14, tzinfo=UTC)
    assert fire is not None and fire.tzinfo is UTC


def test_a_year_of_seconds_is_counted_without_visiting_them() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_cron("* * * * * *").count_between(start, start.replace(year=2027), NEW_YORK) == 365 * 86400
    assert parse_cron("0 0 1 1 *").count_between(start.replace(year=1), start.replace(year=9999), UTC) == 9998


def random_field(draw: random.Random, low: int, high: int, names: tuple[str, ...] = ()) -> str:
    def term() -> str:
        kind = draw.random()
        # The others have readings of their own for a range of one value such as 5-5 or 5-5/2.
        first, second = sorted(draw.sample(range(low, high + 1), 2))
        if kind < 0.5:
            return names[first - low] if names and draw.random() < 0.4 else str(first)
        if kind < 0.75:
            return f"{first}-{second}"
        return f"{first}-{second}/{draw.randint(1, 6)}"

    kind = draw.random()
    if kind < 0.3:
        return "*"
    if kind < 0.45:
        return f"*/{draw.randint(2, max(2, (high - low) // 2))}"
    return ",".join(term() for _ in range(draw.choice((1, 1, 1, 2, 3))))


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def random_expression(draw: random.Random) -> str:
    # To croniter a day field that lists everything is a star; here, as in Vixie cron, only a star is a star.
    date, weekday = draw.randint(1, 2), draw.randint(0, 1)
    fields = [
        random_field(draw, 0, 59),
        random_field(draw, 0, 23),
        random_field(draw, date, date + 29),
        random_field(draw, 1, 12, MONTHS),
        random_field(draw, weekday, weekday + 5, WEEKDAYS[weekday:]),
    ]
    if draw.random() < 0.25:
        fields.insert(0, random_field(draw, 0, 59))
    return " ".join(fields)


def random_start(draw: random.Random) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(12 * 365 * 86400))


def possible(text: str) -> Cron | None:
    try:
        return parse_cron(text)
    except InvalidArgument as error:
        assert "never fires" in error.message
        return None


@pytest.mark.parametrize("seed", range(4))
def test_plain_expressions_fire_as_in_croniter(seed: int) -> None:
    draw = random.Random(seed)
    compared = 0
    while compared < 250:
        text, start = random_expression(draw), random_start(draw)
        if possible(text) is None:
            continue
        theirs = croniter(text, start, ret_type=datetime, second_at_beginning=True)
        assert fires(text, 3, start) == [theirs.get_next(datetime) for _ in range(3)], text
        compared += 1


def for_cronsim(draw: random.Random) -> str:
    *rest, date, month, weekday = random_expression(draw).split()
    if draw.random() < 0.3:
        date = draw.choice(("L", "LW", "1,L", "LW,15"))
    if draw.random() < 0.3:
        weekday = draw.choice(("5L", "0L", "MON#2", "SUN#5", "MON#1,FRI#3", "2,4L"))
    # With a stepped star in either day field cronsim wants both to match, as in Debian; here one is enough.
    date = "*" if date.startswith("*") else date
    weekday = "*" if weekday.startswith("*") else weekday
    return " ".join((*rest, date, month, weekday))


@pytest.mark.parametrize("seed", range(4))
def test_expressions_with_special_days_fire_as_in_cronsim_both_ways(seed: int) -> None:
    draw = random.Random(100 + seed)
    compared = 0
    while compared < 250:
        text, start = for_cronsim(draw), random_start(draw)
        cron = possible(text)
        if cron is None:
            continue
        ahead = CronSim(text, start)
        assert fires(text, 3, start) == [next(ahead) for _ in range(3)], text
        assert cron.previous_before(start, UTC) == next(CronSim(text, start, reverse=True)), text
        compared += 1


@pytest.mark.parametrize("seed", range(4))
def test_expressions_in_a_zone_with_daylight_saving_fire_as_in_cronsim(seed: int) -> None:
    draw = random.Random(200 + seed)
    compared = 0
    while compared < 200:
        text, start = for_cronsim(draw), random_start(draw)
        minute, hour, *others = text.split()
        # cronsim lets a star in the minute decide too, and has no such rule for six fields.
        if len(others) != 3 or (minute.startswith("*") and not hour.startswith("*")) or possible(text) is None:
            continue
        theirs = CronSim(text, start.astimezone(NEW_YORK))
        assert fires(text, 4, start, NEW_YORK) == [next(theirs).astimezone(UTC) for _ in range(4)], text
        compared += 1


ZONES = st.sampled_from(
    ["UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Kolkata"]
).map(ZoneInfo)
EXPRESSIONS = st.integers(0, 2**32).map(lambda seed: for_cronsim(random.Random(seed)))
INSTANTS = st.timedeltas(timedelta(days=-25_000), timedelta(days=65_000)).map(
    lambda elapsed: datetime(1970, 1, 1, tzinfo=UTC) + elapsed
)


@given(EXPRESSIONS, ZONES, INSTANTS)
def test_next_and_previous_undo_each_other(text: str, tz: tzinfo, instant: datetime) -> None:
    cron = possible(text)
    if cron is None:
        return
    following, previous = cron.next_after(instant, tz), cron.previous_before(instant, tz)
    assert following is not None and previous is not None
    assert previous < instant < following
    between = cron.previous_before(following, tz)
    assert between in (previous, instant)
    assert cron.next_after(previous, tz) in (following, instant)
    assert cron.count_between(previous, following, tz) == 1 + (between == instant)


@given(EXPRESSIONS, ZONES, INSTANTS, st.integers(1, 40))
def test_counting_equals_enumerating(text: str, tz: tzinfo, instant: datetime, n: int) -> None:
    if possible(text) is None:
        return
    listed = fires(text, n, instant, tz)
    assert all(earlier < later for earlier, later in pairwise(listed))
    cron = parse_cron(text)
    assert cron.count_between(instant, listed[-1], tz) == n
    assert cron.count_between(instant, listed[-1] - timedelta(microseconds=1), tz) == n - 1
    assert cron.count_between(listed[0], listed[-1], tz) == n - 1

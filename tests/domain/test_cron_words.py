"""Expressions as sentences, in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.cron import parse_cron
from ksana.domain.cron_words import cron_words
from ksana.domain.errors import InvalidArgument
from ksana.domain.words import listed_zh, ordinal

CASES = [
    ("* * * * *", "Every minute", "每分钟"),
    ("*/5 * * * *", "Every 5 minutes", "每 5 分钟"),
    ("*/10 * * * * *", "Every 10 seconds", "每 10 秒"),
    ("* * * * * *", "Every second", "每秒"),
    ("0 9 * * *", "At 09:00 every day", "每天 09:00"),
    ("30 0 9 * * *", "At 09:00:30 every day", "每天 09:00:30"),
    ("0 9,17 * * *", "At 09:00 and 17:00 every day", "每天 09:00 和 17:00"),
    ("30 9 * * 1-5", "At 09:30 from Monday through Friday", "每周一至周五 09:30"),
    ("0 9 * * 1,3,5", "At 09:00 on Monday, Wednesday and Friday", "每周一、周三和周五 09:00"),
    ("0 9 * * FRI-SUN", "At 09:00 from Friday through Sunday", "每周五至周日 09:00"),
    ("30 * * * *", "At minute 30 past every hour", "每小时的第 30 分"),
    ("0 */5 * * *", "At minute 0 past every 5th hour", "每 5 小时的第 0 分"),
    ("0 9-17/2 * * *", "At minute 0 past hours 9, 11, 13, 15 and 17", "9 点、11 点、13 点、15 点和 17 点的第 0 分"),
    (
        "*/15 9-17 * * MON-FRI",
        "Every 15 minutes during hours 9 through 17 from Monday through Friday",
        "每周一至周五，9 至 17 点内每 15 分钟",
    ),
    ("15 10 * * * *", "At second 15 of minute 10 past every hour", "每小时的第 10 分的第 15 秒"),
    ("*/5 0 9 * * *", "Every 5 seconds during minute 0 past hour 9", "9 点的第 0 分内每 5 秒"),
    ("0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month", "每月 1 日和 15 日 00:00"),
    ("0 0 L * *", "At 00:00 on the last day of the month", "每月最后一天 00:00"),
    ("0 0 L-3 * *", "At 00:00 on the day 3 days before the last of the month", "每月最后一天之前第 3 天 00:00"),
    ("0 0 LW * *", "At 00:00 on the last weekday (Monday to Friday) of the month", "每月最后一个工作日 00:00"),
    (
        "0 0 15W * *",
        "At 00:00 on the weekday (Monday to Friday) nearest day 15 of the month",
        "每月离 15 日最近的工作日 00:00",
    ),
    ("0 9 * * MON#2", "At 09:00 on the second Monday of the month", "每月第二个周一 09:00"),
    ("0 9 * * 5L", "At 09:00 on the last Friday of the month", "每月最后一个周五 09:00"),
    ("0 0 13 * FRI", "At 00:00 on day 13 of the month or on Friday", "每月 13 日或每周五 00:00"),
    ("0 0 1 1 *", "At 00:00 on day 1 of the month in January", "1 月 1 日 00:00"),
    ("0 0 * 6-8 *", "At 00:00 every day in June through August", "6 至 8 月的每天 00:00"),
    ("@weekly", "At 00:00 on Sunday", "每周日 00:00"),
]


@pytest.mark.parametrize(("expr", "en", "zh"), CASES)
def test_an_expression_is_said_in_both_languages(expr: str, en: str, zh: str) -> None:
    words = cron_words(parse_cron(expr).normalized, "Asia/Shanghai")
    assert words.en == f"{en} (Asia/Shanghai)"
    assert words.zh == f"{zh}（上海时间）"


def test_a_zone_without_a_chinese_name_is_called_by_its_own() -> None:
    assert cron_words(parse_cron("@daily").normalized, "America/Lima").zh == "每天 00:00（America/Lima 时间）"


_FIELD = st.sampled_from(["*", "*/2", "*/7", "1", "1-5", "1,3", "2/2", "1-5/2"])


@given(st.lists(_FIELD, min_size=6, max_size=6))
def test_whatever_can_be_read_can_be_said(fields: list[str]) -> None:
    try:
        cron = parse_cron(" ".join(fields))
    except InvalidArgument:
        return
    words = cron_words(cron.normalized, "UTC")
    assert words.en.endswith(" (UTC)")
    assert words.zh.endswith("（UTC）")
    assert "  " not in words.en


def test_lists_and_ordinals() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd"]
    )
    assert listed_zh(["周一", "周二"]) == "周一和周二"

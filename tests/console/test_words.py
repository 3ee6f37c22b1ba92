"""The console speaks both languages in full."""

from __future__ import annotations

import json
import re
from pathlib import Path

WEB = Path(__file__).parents[2] / "web"
LANGUAGES = ("en", "zh-CN")


def words(language: str) -> dict[str, str]:
    read: dict[str, str] = json.loads((WEB / "i18n" / f"{language}.json").read_text())
    return read


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_both_languages_have_the_same_words_in_order() -> None:
    english, chinese = (words(language) for language in LANGUAGES)
    assert list(english) == list(chinese) == sorted(english)


def test_no_word_is_empty() -> None:
    assert [(language, key) for language in LANGUAGES for key, text in words(language).items() if not text] == []


def test_both_languages_put_the_same_values_into_a_sentence() -> None:
    english, chinese = (words(language) for language in LANGUAGES)
    differing = [
        key
        for key in english
        if placeholders(english[key]) ^ placeholders(chinese[key])
        # "the last run" needs no number; a language that does not count says it all the same.
        and not (key.endswith(".one") and placeholders(english[key]) ^ placeholders(chinese[key]) <= {"n", "rest"})
    ]
    assert differing == []


def test_a_counted_sentence_has_both_forms() -> None:
    english = words("en")
    stems = {key.rpartition(".")[0] for key in english if key.endswith((".one", ".other"))}
    assert [stem for stem in stems if not {f"{stem}.one", f"{stem}.other"} <= english.keys()] == []


def test_no_word_is_left_over() -> None:
    source = "\n".join(path.read_text() for path in (WEB / "src").rglob("*.ts*"))
    literal = set(re.findall(r"'([a-z_]+(?:\.[a-z_0-9]+)+)'", source))
    # Words for values of the API are looked up by what they begin with: word('state', …), t(`bulk.ask_${action}`), or a
    # beginning that is handed on, which then has no word that is named whole.
    stems = {*re.findall(r"(?:word|options)\('([a-z_.]+)'", source), *re.findall(r"`([a-z_.]+)[._]\$\{", source)}
    stems |= set(re.findall(r"'([a-z_]+)'", source)) - {key.partition(".")[0] for key in literal}
    unused = [
        key
        for key in words("en")
        if key not in literal
        and key.removesuffix(".one").removesuffix(".other") not in literal
        and not any(key.startswith((f"{stem}.", f"{stem}_")) for stem in stems)
    ]
    assert unused == []

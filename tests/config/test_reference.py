"""The table, the values and the page tell the same story."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ksana.config import Settings, render_reference
from ksana.config.fields import FIELDS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def leaves(struct: msgspec.Struct, prefix: str = "") -> Iterator[str]:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_every_setting_stands_in_the_table_once() -> None:
    keys = [field.key for field in FIELDS]
    assert sorted(keys) == sorted(set(leaves(Settings())) - {"sources", "warnings"})


def test_no_name_means_two_settings() -> None:
    names = [name for field in FIELDS for name in (*field.env, *field.bare, *field.keys, field.flag) if name]
    assert len(names) == len(set(names))


def test_every_setting_has_a_prefixed_variable_of_its_own() -> None:
    assert all(field.env and all(name.startswith("KSANA_") for name in field.env) for field in FIELDS)


def test_every_default_is_allowed() -> None:
    for field in FIELDS:
        value = Settings().value(field.key)
        if isinstance(value, int) and not isinstance(value, bool):
            assert field.kind.parse(str(value)) == value


def test_the_committed_page_is_the_rendered_table() -> None:
    assert PAGE.read_text("utf-8") == render_reference()

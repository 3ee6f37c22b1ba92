from pathlib import Path

from ksana.domain.pictures import render_states
from ksana.domain.states import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


def test_the_page_about_states_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_states(), (
        "write the page anew with ksana.domain.pictures.render_states"
    )


def test_every_arrow_of_the_table_is_in_the_picture() -> None:
    picture = render_states()
    for (state, event), after in TABLE.items():
        assert f"    {state} --> {after}: {event.value.replace('_', ' ')}\n" in picture

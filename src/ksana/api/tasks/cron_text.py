"""Cron as this surface takes it: five fields or six, kept as six, with the document's meaning of `*/N`.

The document's `*/N` matches values divisible by N, the core's counts from the field's lowest value. The two differ
where that value is 1: in day-of-month and month. There the meant values are written out, so that what is stored and
shown is what happens.
"""

from __future__ import annotations

import re
from typing import Final

from ksana.domain.cron_fields import DATE, MONTH, Unit, parse_fields
from ksana.domain.errors import InvalidArgument

FIELD: Final = "cron_expr"
_STEP: Final = re.compile(r"\*/([0-9]{1,4})")
_DATE_PLACE, _MONTH_PLACE = 3, 4
_WITH_SECONDS: Final = 6


def normalized(text: str, *, seconds_field: bool) -> str:
    """The expression with six fields, single spaces and one meaning; InvalidArgument if it is none."""
    if len(text.split()) == _WITH_SECONDS and not seconds_field:
        raise InvalidArgument.of(
            FIELD, "has a field for seconds, which scheduler.enable_seconds_field: false refuses; write five fields"
        )
    words = parse_fields(text, FIELD).normalized.split()
    for place, unit in ((_DATE_PLACE, DATE), (_MONTH_PLACE, MONTH)):
        words[place] = ",".join(_written_out(unit, term) for term in words[place].split(","))
    return parse_fields(" ".join(words), FIELD).normalized


def _written_out(unit: Unit, term: str) -> str:
    step = _STEP.fullmatch(term)
    if step is None:
        return term
    values = range(unit.low, unit.high + 1)
    meant = [str(value) for value in values if value % int(step[1]) == 0]
    if not meant:
        raise InvalidArgument.of(
            FIELD, f'{unit.name} "{term}": no value of {unit.low}-{unit.high} is divisible by {step[1]}; lower the step'
        )
    return ",".join(meant)

"""Settings for people: the reference page from the table, and each value with its source."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple

from ksana.config.field import Field
from ksana.config.fields import FIELDS
from ksana.config.kinds import span_text
from ksana.config.model import Settings
from ksana.config.urls import mask_url

_INTRO = """\
# Configuration

<!-- Generated from the settings table in src/ksana/config/fields.py; a test compares them. -->

Every setting has a default; `ksana serve` runs without any of them. A value is taken from the first of

1. a flag of the command line,
2. a `KSANA_` variable of the environment,
3. a variable without the prefix, where one is listed,
4. the configuration file: what `--config` or `KSANA_CONFIG` names, else `./ksana.yaml`, else
   `/etc/ksana/ksana.yaml`,
5. the default.

When two variables for one setting differ, the first listed wins and a warning says so. An empty variable
counts as not set. An unknown key in the file, a key given twice or a value that is not allowed stops the
start, and every such fault is reported at once. An unknown `KSANA_` variable only warns.

Durations are written `500ms`, `5s`, `1h30m` or `30d`; a bare whole number is seconds. In a variable, the
items of a list are parted by commas. `ksana config show` prints each value with its source, secrets hidden.
"""

_OUTRO = """
## Store addresses

| Written | Store |
|---|---|
| `sqlite:` | `ksana.db` in `storage.dir` |
| `sqlite:state.db`, `sqlite:///state.db` | that file, from the working directory |
| `sqlite:/srv/state.db`, `sqlite:////srv/state.db` | that file, by its absolute path |
| `json:`, `json:/srv/ksana` | `jobs.json` in `storage.dir` or in that directory |
| `postgresql://user:pass@host:5432/db` | PostgreSQL |
| `mysql://user:pass@host:3306/db` | MySQL or MariaDB |
| `user:pass@tcp(host:3306)/db?parseTime=true&loc=UTC` | the same, as the Go driver writes it |
| `redis://:pass@host:6379/0`, `rediss://…` | Redis, plain or over TLS |
| `redis://host?prefix=billing` | the same under another prefix than `ksana` |
| `unix:///run/redis/redis.sock?db=0` | Redis by its socket on this machine |

In a URL the characters `@ : / ? # %` of a password are written `%40 %3A %2F %3F %23 %25`. In a Go DSN they
stand as they are. Of its parameters `charset` and `tls` are kept; `parseTime` and `loc` need nothing, for
times are always read as times and stored in UTC; others are ignored with a warning.

## Beyond one machine

Listening on anything but loopback needs an API key: make one with `ksana key create`, or give `auth.keys`.
Without a key the server refuses to start unless `server.insecure` is set.

## Kubernetes

A Service called `ksana` makes Kubernetes set `KSANA_PORT=tcp://…` in the pods beside it. Such a value is
ignored with a warning; `enableServiceLinks: false` in the pod removes it.
"""


class Row(NamedTuple):
    """One setting as `ksana config show` prints it."""

    key: str
    value: str
    source: str
    env: tuple[str, ...] = ()
    meaning: str = ""


def settings_report(settings: Settings) -> list[Row]:
    """Every setting with its value, secrets hidden, and where the value came from."""
    return [
        Row(
            field.key,
            _masked(field, settings.value(field.key)),
            settings.sources.get(field.key, "default"),
            (*field.env, *field.bare),
            field.meaning,
        )
        for field in FIELDS
    ]


def render_reference() -> str:
    """The page docs/configuration.md."""
    sections = [_INTRO]
    for group, fields in groupby(FIELDS, lambda field: field.key.partition(".")[0]):
        rows = "".join(_reference_row(field) for field in fields)
        sections.append(f"\n## {group}\n\n| Key | Variable | Flag | Default | Meaning |\n|---|---|---|---|---|\n{rows}")
    return "".join([*sections, _OUTRO])


def _reference_row(field: Field) -> str:
    keys = f"`{field.key}`" + "".join(f"<br>also `{key}`" for key in field.also)
    names = ", ".join(f"`{name}`" for name in (*field.env, *field.bare))
    flag = f"`--{field.flag.replace('_', '-')}`" if field.flag else ""
    default = field.default or f"`{_plain(Settings().value(field.key))}`"
    cells = (keys, names, flag, default, f"{field.meaning} Allowed: {field.kind.allowed}.")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _masked(field: Field, value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: ***" for name in value)
    shown = _plain(value)
    if field.key.endswith("url"):
        return mask_url(shown)
    if not field.secret or not shown:
        return shown
    # Addresses of alerts hold tokens anywhere, so nothing of them is shown.
    return ", ".join("***" for _ in value) if isinstance(value, tuple) else "***"


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return span_text(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)

"""What `ksana doctor --fix` can mend safely: nothing is lost by it, and most of it a start would do as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ksana.cli.checks import DIRECTORY, JOURNAL, MIGRATIONS, MODES, Check, is_open_to_others, store_files

if TYPE_CHECKING:
    from ksana.config import Settings

_PRIVATE_DIRECTORY, _PRIVATE = 0o700, 0o600


class Mend(NamedTuple):
    """Something that can be put right: what would be done, what was done, and doing it."""

    question: str
    done: str
    act: Callable[[], None]


def mends(settings: Settings, checks: Iterable[Check]) -> Iterator[Mend]:
    """What can be mended of what the checks found, in the order in which it has to be."""
    found = {check.name for check in checks if check.level == "warn"}
    if DIRECTORY in found:
        directory = _directory(settings)
        yield Mend(f"Make {directory}?", f"made {directory}", lambda: _make(directory))
    if found & {JOURNAL, MIGRATIONS}:
        where = _masked(settings)
        yield Mend(f"Bring {where} up to date?", f"brought {where} up to date", lambda: _migrate(settings))
    if MODES in found:
        files = [file for file in store_files(settings) if is_open_to_others(file)]
        names = ", ".join(str(file) for file in files)
        yield Mend(f"Keep {names} from others?", f"kept {names} from others", lambda: _close(files))


def _directory(settings: Settings) -> Path:
    scheme, _, rest = settings.storage.url.partition(":")
    path = Path("/" + rest.lstrip("/"))
    return path if scheme == "json" else path.parent


def _make(directory: Path) -> None:
    directory.mkdir(_PRIVATE_DIRECTORY, parents=True, exist_ok=True)


def _close(files: Iterable[Path]) -> None:
    for file in files:
        file.chmod(_PRIVATE)


def _masked(settings: Settings) -> str:
    from ksana.config import mask_url

    return mask_url(settings.storage.url)


def _migrate(settings: Settings) -> None:
    from ksana.cli.db import migrate_store

    migrate_store(settings)

"""Choosing each value among flags, environment, file and default; every fault is reported at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

import msgspec

from ksana.config.derive import derive
from ksana.config.field import Field
from ksana.config.fields import FIELDS
from ksana.config.kinds import Raw, RefusedError
from ksana.config.model import Settings
from ksana.config.names import BY_FLAG, BY_KEY, KSANA_NAMES, did_you_mean, hint
from ksana.config.yaml_file import ConfigFile, Entry, read_config
from ksana.domain.errors import InvalidArgument, Problem

SYSTEM_PATH = Path("/etc/ksana/ksana.yaml")
CONFIG_NAME = "KSANA_CONFIG"

# Names that belong to the client and the command line, not to the server's settings.
_OTHER_NAMES = frozenset({CONFIG_NAME, "KSANA_URL", "KSANA_KEY"})
# Kubernetes writes these into every pod beside a Service called ksana or ksana-something.
_SERVICE_LINK = re.compile(r"KSANA(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def environment() -> Mapping[str, str]:
    """The environment of this process; nothing else of the server reads it."""
    return dict(os.environ)


def load_settings(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    config_path: Path | None,
    cwd: Path,
    system_path: Path = SYSTEM_PATH,
) -> Settings:
    """Settings from all sources, or InvalidArgument with every problem.

    Flags go by name (`port`) or by dotted key (`server.port`); None means not given.
    """
    loading = _Loading(flags, environ)
    file = _config_file(environ, config_path, cwd, system_path)
    loading.problems.extend(file.problems)
    loading.check_names()
    settings = Settings()
    for field in FIELDS:
        settings = loading.choose(settings, field, file)
    settings = derive(settings, cwd.absolute(), loading.problems, loading.warnings)
    if loading.problems:
        raise InvalidArgument(loading.problems)
    return msgspec.structs.replace(settings, warnings=tuple(loading.warnings))


def _config_file(environ: Mapping[str, str], config_path: Path | None, cwd: Path, system_path: Path) -> ConfigFile:
    if config_path is None and environ.get(CONFIG_NAME):
        config_path = Path(environ[CONFIG_NAME])
    if config_path is not None:
        return read_config(cwd / config_path)
    for path in (cwd / "ksana.yaml", system_path):
        if path.exists():
            return read_config(path)
    return ConfigFile({}, [])


class _Loading:
    def __init__(self, flags: Mapping[str, object], environ: Mapping[str, str]) -> None:
        self._flags = {name: value for name, value in flags.items() if value is not None}
        self._environ = environ
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def check_names(self) -> None:
        """A flag nobody knows is a mistake; a variable may belong to something else, so it only warns."""
        for name in self._flags:
            if name not in BY_FLAG and name not in BY_KEY:
                self.problems.append(Problem(name, f"is not a setting{did_you_mean(name)}"))
        for name in sorted(self._environ):
            if (
                name.startswith("KSANA_")
                and name not in KSANA_NAMES | _OTHER_NAMES
                and not _SERVICE_LINK.fullmatch(name)
            ):
                close = hint(get_close_matches(name, sorted(KSANA_NAMES), 1, 0.75))
                self.warnings.append(f"{name} in the environment is not a setting and is ignored{close}")

    def choose(self, settings: Settings, field: Field, file: ConfigFile) -> Settings:
        """Put the first value found into the settings, or note why it is refused."""
        entry = next(
            iter((*self._from_flags(field), *self._from_environment(field), *self._from_file(field, file))),
            None,
        )
        if entry is None:
            return settings
        try:
            value = field.kind.parse(entry.raw)
        except RefusedError as refusal:
            self.problems.append(field.problem(entry.raw, entry.source, refusal))
            return settings
        return settings.having(field.key, value).having("sources", {**settings.sources, field.key: entry.source})

    def _from_flags(self, field: Field) -> Iterator[Entry]:
        for name in (field.flag, *field.keys):
            if name in self._flags:
                yield Entry(_raw(self._flags[name]), f"flag --{name.replace('_', '-')}")

    def _from_environment(self, field: Field) -> Iterator[Entry]:
        names = [name for name in (*field.env, *field.bare) if self._is_set(name)]
        for other in names[1:]:
            if self._environ[other].strip() != self._environ[names[0]].strip():
                self.warnings.append(f"{names[0]} and {other} are both set and differ; {names[0]} wins, unset {other}")
        for name in names[:1]:
            yield Entry(self._environ[name], f"environment {name}")

    def _is_set(self, name: str) -> bool:
        value = self._environ.get(name, "").strip()
        if name == "KSANA_PORT" and _SERVICE_ADDRESS.match(value):
            self.warnings.append(
                "KSANA_PORT holds an address that Kubernetes wrote for a Service called ksana "
                "and is ignored. Set enableServiceLinks: false in the pod, or give the port as PORT"
            )
            return False
        return bool(value)

    def _from_file(self, field: Field, file: ConfigFile) -> Iterator[Entry]:
        keys = [key for key in field.keys if key in file.entries]
        for other in keys[1:]:
            if file.entries[other].raw != file.entries[keys[0]].raw:
                both = f"{file.entries[keys[0]].source} and {file.entries[other].source}"
                self.problems.append(Problem(other, f"says the same as {keys[0]} but differs ({both}); keep one"))
        for key in keys[:1]:
            yield file.entries[key]


def _raw(value: object) -> Raw:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return {str(name): str(text) for name, text in value.items()}
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return str(value)

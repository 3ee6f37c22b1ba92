"""Reads a crontab, of a person or of the system: each line becomes a job, or the reason why it cannot and what to do.

Ksana makes requests and calls functions; it starts no programs. So a line that calls curl becomes a job, and so does
one that a map gives an address for; any other is said aloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ksana.cli.curl import is_curl, read_curl
from ksana.domain.cron import parse_cron
from ksana.domain.errors import InvalidArgument

_VARIABLE: Final = re.compile(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z_]\w*))\s*=\s*(.*)")
_REFERENCE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ALIASES: Final = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 60
# Names of system accounts and people; a path or a word with an option is none.
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?")
_HOST: Final = re.compile(r"[^/]*//([^/?#:]+)")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a crontab: a job in the words of POST /api/v2/jobs, or `refused` with the reason. `notes` tell what of
    it is left behind."""

    number: int
    text: str
    body: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    refused: str = ""
    advice: str = ""

    @property
    def name(self) -> str:
        return str(self.body.get("name", ""))


def read_crontab(
    text: str, *, timezone: str, has_users: bool = False, url_map: Mapping[str, str] | None = None
) -> list[Line]:
    """Every line that is a schedule; the variables before it hold for it."""
    reader = _Reader(timezone, has_users, url_map or {})
    return list(reader.lines(text))


class _Refused(Exception):
    """It cannot be a job."""

    def __init__(self, why: str, advice: str = "") -> None:
        super().__init__(why)
        self.advice = advice


class _Reader:
    def __init__(self, timezone: str, has_users: bool, url_map: Mapping[str, str]) -> None:
        self._timezone = timezone
        self._has_users = has_users
        self._url_map = url_map
        self._variables: dict[str, str] = {}
        self._names: set[str] = set()
        self._comment = ""

    def lines(self, text: str) -> Iterator[Line]:
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if not line:
                self._comment = ""
            elif line.startswith("#"):
                self._comment = line.lstrip("# ").strip()
            elif variable := _VARIABLE.fullmatch(line):
                self._set(variable)
            else:
                yield self._read(number, line)
                self._comment = ""

    def _set(self, variable: re.Match[str]) -> None:
        name = variable[1] or variable[2] or variable[3]
        value = variable[4].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        self._variables[name] = value

    def _read(self, number: int, line: str) -> Line:
        try:
            body, notes = self._job(line)
        except _Refused as refused:
            return Line(number=number, text=line, refused=str(refused), advice=refused.advice)
        return Line(number=number, text=line, body=body, notes=notes)

    def _job(self, line: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        expr, rest = _split_schedule(line)
        notes: list[str] = []
        if self._has_users:
            user, *command_of = rest.split(None, 1) or [""]
            rest = "".join(command_of)
            if not _USER.fullmatch(user) or not rest:
                raise _Refused(f"{user!r} is no user; is it a crontab of a person? then leave --system out")
            notes.append(f"it ran as {user}; requests are made by the server")
        command, stdin = _split_percent(rest.strip())
        if stdin:
            notes.append("what followed % was its input and is left behind")
        if not command:
            raise _Refused("there is no command")
        target, more = self._target(command)
        notes += more.pop("notes")
        zone = self._variables.get("CRON_TZ") or self._variables.get("TZ") or self._timezone
        body = {
            "name": self._name(target["config"]["url"]),
            "description": self._comment,
            "target": target,
            "schedule": {"kind": "cron", "expr": expr, "timezone": zone},
            **more,
        }
        return {name: value for name, value in body.items() if value != ""}, tuple(notes)

    def _target(self, command: str) -> tuple[dict[str, Any], dict[str, Any]]:
        for part, address in self._url_map.items():
            if part in command:
                method, _, url = address.rpartition(" ")
                return {"kind": "http", "config": {"method": method or "POST", "url": url}}, {"notes": []}
        if not is_curl(command):
            program = command.split()[0]
            raise _Refused(
                f"{program} is a program, and Ksana starts none",
                "let a service do it and call that: --url-map "
                f"'{program}=POST https://…'; or write it as a Python function, see docs/periodic.md",
            )
        try:
            request = read_curl(self._expanded(command))
        except InvalidArgument as error:
            raise _Refused(error.problems[0].message, "change the line, or give it an address with --url-map") from None
        more: dict[str, Any] = {"notes": list(request.notes)}
        if request.timeouts:
            more["timeouts"] = request.timeouts
        if request.retry:
            more["retry"] = request.retry
        return {"kind": "http", "config": request.config}, more

    def _expanded(self, command: str) -> str:
        """Variables of the crontab in place of their references; others are known only where cron runs."""

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            if name not in self._variables:
                raise _Refused(f"${name} is not set in the crontab", f"set {name}=… above the line")
            return self._variables[name]

        if "$(" in command or "`" in command:
            raise _Refused(
                "part of it is made by another command", "put the value in, or use a template such as {{now}}"
            )
        return _REFERENCE.sub(value, command)

    def _name(self, url: str) -> str:
        """A name that tells the line apart: its comment, else what it calls."""
        host = _HOST.match(url)
        path = url.partition("://")[2].partition("/")[2].partition("?")[0]
        wanted = self._comment if 0 < len(self._comment) <= _LONGEST_NAME else f"{host[1] if host else ''} {path}"
        base = _NAME.sub("-", wanted).strip("-.")[:_LONGEST_NAME] or "job"
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}-{count}"
        self._names.add(name)
        return name


def _split_schedule(line: str) -> tuple[str, str]:
    """The schedule in front of a line, and the rest."""
    words = line.split(None, 1)
    if words[0].startswith("@"):
        alias = words[0].lower()
        if alias == "@reboot":
            raise _Refused("@reboot is no time; nothing fires because a server was started")
        if alias not in _ALIASES:
            raise _Refused(f"{words[0]} is none of {', '.join(_ALIASES)}")
        return alias, words[1] if len(words) > 1 else ""
    fields = line.split(None, 5)
    if len(fields) < 6:
        raise _Refused("expected five fields and a command")
    expr = " ".join(fields[:5])
    try:
        parse_cron(expr)
    except InvalidArgument as error:
        raise _Refused(error.problems[0].message) from None
    return expr, fields[5]


def _split_percent(command: str) -> tuple[str, str]:
    """cron ends the command at the first % that is not escaped; what follows is its input."""
    parts = re.split(r"(?<!\\)%", command, maxsplit=1)
    return parts[0].replace("\\%", "%").strip(), parts[1] if len(parts) > 1 else ""

"""A curl command as the target of a job: the options that say what to send, and a refusal for those that say more."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ksana.domain.errors import InvalidArgument

_FIELD: Final = "curl"
# Options that change only what a person at a terminal would see.
_SILENT: Final = frozenset(
    {
        *("-s", "--silent", "-S", "--show-error", "-f", "--fail", "--fail-with-body", "-v", "--verbose", "-i"),
        *("--include", "-L", "--location", "--compressed", "-g", "--globoff", "-#", "--progress-bar", "-N"),
        *("--no-buffer", "--http1.1", "--http2", "-4", "--ipv4", "-6", "--ipv6", "--no-progress-meter"),
    }
)
_SILENT_WITH_VALUE: Final = frozenset({"-o", "--output", "-w", "--write-out", "--stderr"})
_SHORT_WITH_VALUE: Final = "XHduAemobw"
_CURLS: Final = ("curl", "/usr/bin/curl", "/bin/curl", "/usr/local/bin/curl")
_AFTER: Final = (">", ">>", "2>", "2>>", "&>", "2>&1", ">&2")
_JOINS: Final = ("|", "||", "&&", ";", "&")
_KEPT: Final = "its output goes to the run instead of a file"
_FORM: Final = "application/x-www-form-urlencoded"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a curl command sends."""

    config: dict[str, Any]
    timeouts: dict[str, str] = {}
    retry: dict[str, Any] = {}
    notes: tuple[str, ...] = ()


def is_curl(command: str) -> bool:
    return command.split(None, 1)[0] in _CURLS if command.strip() else False


def read_curl(command: str) -> Request:
    """What a curl command sends; InvalidArgument for what a job cannot do."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidArgument.of(_FIELD, f"its quotes do not close: {error}") from None
    reading = _Reading()
    words, is_redirected = _without_redirections(words[1:])
    todo = iter(words)
    for word in todo:
        reading.take(word, lambda name: _value(name, todo))
    return reading.request(is_redirected)


def _value(name: str, rest: Any) -> str:
    found = next(rest, None)
    if found is None:
        raise InvalidArgument.of(_FIELD, f"{name} is followed by nothing")
    return str(found)


def _without_redirections(words: list[str]) -> tuple[list[str], bool]:
    """Where output goes does not matter: a run keeps what came back. Another command after it does."""
    kept: list[str] = []
    skipped = False
    todo = iter(words)
    for word in todo:
        if word in _JOINS:
            raise InvalidArgument.of(_FIELD, f"goes on with {word!r}; a job makes one request, a chain several")
        if word in _AFTER:
            skipped = True
            if not word.endswith(("&1", "&2")):
                next(todo, None)
        elif word.startswith((">", "2>", "&>")):
            skipped = True
        else:
            kept.append(word)
    return kept, skipped


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise InvalidArgument.of(_FIELD, f"{name} {text} is no whole number")
    return int(text)


class _Reading:
    def __init__(self) -> None:
        self._method = ""
        self._url = ""
        self._headers: dict[str, str] = {}
        self._data: list[str] = []
        self._timeouts: dict[str, str] = {}
        self._retry: dict[str, Any] = {}
        self._is_kept = False
        self._is_json = False
        self._is_get = False

    def take(self, word: str, value: Callable[[str], str]) -> None:
        """One word, and the one after it if it wants one."""
        if not word.startswith("-") or word == "-":
            self._take_url(word)
            return
        name, between, given = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("--") and len(word) > 2:
            if word[1] not in _SHORT_WITH_VALUE:
                # `-sS` is `-s -S`, and of `-sXPOST` the last takes the rest.
                self.take(word[:2], value)
                self.take(f"-{word[2:]}", value)
                return
            name, between, given = word[:2], "=", word[2:]
        self._option(name, (lambda: given) if between else (lambda: value(name)))

    def _option(self, name: str, value: Callable[[], str]) -> None:
        match name:
            case "-X" | "--request":
                self._method = value().upper()
            case "-H" | "--header":
                self._header(value())
            case "-d" | "--data" | "--data-ascii" | "--data-raw" | "--data-binary" | "--data-urlencode" | "--json":
                self._is_json |= name == "--json"
                self._take_data(name, value())
            case "-u" | "--user":
                import base64

                self._headers["Authorization"] = f"Basic {base64.b64encode(value().encode()).decode()}"
            case "-A" | "--user-agent":
                self._headers["User-Agent"] = value()
            case "-e" | "--referer":
                self._headers["Referer"] = value()
            case "-b" | "--cookie":
                self._headers["Cookie"] = value()
            case "-m" | "--max-time":
                self._timeouts["total"] = f"{value()}s"
            case "--connect-timeout":
                self._timeouts["connect"] = f"{value()}s"
            case "--retry":
                self._retry["max_attempts"] = 1 + _number(name, value())
            case "--retry-delay":
                self._retry["initial_delay"] = f"{_number(name, value())}s"
            case "--url":
                self._take_url(value())
            case "-G" | "--get":
                self._is_get = True
            case "-I" | "--head":
                self._method = "HEAD"
            case _ if name in _SILENT_WITH_VALUE:
                self._is_kept = True
                value()
            case _ if name not in _SILENT:
                raise InvalidArgument.of(_FIELD, f"the option {name} has no counterpart in a job")

    def _take_url(self, word: str) -> None:
        if self._url:
            raise InvalidArgument.of(_FIELD, f"names two addresses, {self._url} and {word}; make a job of each")
        self._url = word if "://" in word else f"http://{word}"

    def _header(self, text: str) -> None:
        name, colon, value = text.partition(":")
        if not colon:
            raise InvalidArgument.of(_FIELD, f"the header {text!r} has no colon")
        self._headers[name.strip()] = value.strip()

    def _take_data(self, name: str, text: str) -> None:
        if text.startswith("@") and name != "--data-raw":
            raise InvalidArgument.of(_FIELD, f"sends the file {text[1:]}; write what is in it into the job")
        if name == "--data-urlencode":
            front, mark, content = text.partition("=")
            text = f"{front}{mark}{quote(content)}" if mark else quote(text)
        self._data.append(text)

    def request(self, is_redirected: bool) -> Request:
        if not self._url:
            raise InvalidArgument.of(_FIELD, "names no address")
        data = "&".join(self._data)
        url = self._url
        if self._is_get and self._data:
            url, data = f"{url}{'&' if '?' in url else '?'}{data}", ""
        config: dict[str, Any] = {"method": self._method or ("POST" if data else "GET"), "url": url}
        headers = dict(self._headers)
        if data:
            config |= self._body(data, headers)
        if headers:
            config["headers"] = headers
        notes = (_KEPT,) if is_redirected or self._is_kept else ()
        return Request(config=config, timeouts=self._timeouts, retry=self._retry, notes=notes)

    def _body(self, data: str, headers: dict[str, str]) -> dict[str, Any]:
        kinds = {name.lower(): value for name, value in headers.items()}
        kind = kinds.get("content-type", "application/json" if self._is_json else _FORM)
        if "json" in kind:
            try:
                body = {"json": msgspec.json.decode(data)}
            except msgspec.DecodeError:
                body = {"body": data}
                headers.setdefault("Content-Type", kind)
            return body
        if "content-type" not in kinds:
            headers["Content-Type"] = kind
        return {"body": data}

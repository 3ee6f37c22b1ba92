"""Celery itself, spoken to from threads: the one place that imports it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

import msgspec

_MOST: Final = 32

_AT_ONCE: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}

SETTINGS: Final = {
    # JSON and nothing else: a pickle in a result would be somebody's code on this node.
    "task_serializer": "json",
    "result_serializer": "json",
    "accept_content": ["json"],
    "result_accept_content": ["json"],
    "task_publish_retry": False,
    "broker_connection_retry": False,
    # Trying again is the business of the run; a broker that is away says so at once.
    "result_backend_transport_options": {"retry_policy": _AT_ONCE},
    "broker_transport_options": {
        **_AT_ONCE,
        # Acceptance is the broker's word, not ours. Transports that know no confirmation do not look at this.
        "confirm_publish": True,
    },
}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A task on its way."""

    id: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    headers: dict[str, Any]
    queue: str | None
    priority: int | None
    expires: float | None


class Answer(msgspec.Struct, frozen=True):
    """What the backend says of a task."""

    state: str
    result: Any


class NotInstalled(Exception):
    """There is no Celery here."""


class Fleets:
    """Celery apps by address, the ones used last."""

    def __init__(self) -> None:
        self._apps: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._changing = Lock()

    def send(self, broker: str, message: Message, connect_timeout: float) -> None:
        """Hand a task to the broker. Whatever Celery raises if it is not taken."""
        app = self._app("broker", broker)
        app.conf.broker_connection_timeout = connect_timeout
        options: Mapping[str, Any] = {"queue": message.queue, "priority": message.priority, "expires": message.expires}
        app.send_task(
            message.task,
            args=message.args,
            kwargs=message.kwargs,
            task_id=message.id,
            headers=message.headers,
            retry=False,
            **{name: value for name, value in options.items() if value is not None},
        )

    def ask(self, backend: str, task_id: str) -> Answer:
        """What has become of a task, as the backend knows it now."""
        found = self._app("backend", backend).backend.get_task_meta(task_id, cache=False)
        return Answer(found["status"], found.get("result"))

    def close(self) -> None:
        with self._changing:
            apps = list(self._apps.values())
            self._apps.clear()
        for app in apps:
            app.close()

    def _app(self, role: str, url: str) -> Any:
        # One that sends has no backend: with one it would wait for the result of everything it has sent.
        with self._changing:
            app = self._apps.get((role, url))
            if app is None:
                app = self._apps[role, url] = _made(role, url)
                if len(self._apps) > _MOST:
                    self._apps.popitem(last=False)[1].close()
            self._apps.move_to_end((role, url))
            return app


def _made(role: str, url: str) -> Any:
    try:
        from celery import Celery
    except ImportError as error:
        raise NotInstalled(f"this node has no Celery ({error}); run: pip install 'ksana-scheduler[celery]'") from error

    class Fleet(Celery):  # type: ignore[misc]
        """Where it is said to be: left to itself, Celery would rather believe its variables in the environment."""

        backend_cls = url if role == "backend" else "disabled"

        def connection_for_write(self, url: str | None = None, **options: Any) -> Any:
            return super().connection_for_write(url or broker, **options)

    broker = url if role == "broker" else "memory://"
    app = Fleet("ksana", set_as_current=False, fixups=[])
    app.conf.update(SETTINGS)
    return app

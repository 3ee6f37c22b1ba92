"""How schemathesis reaches an app: in the thread of the test. Its own way wakes another thread twice for each request,
and looks for proxies in the environment."""

from __future__ import annotations

import asyncio
import io
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from schemathesis.python.asgi import HOST, ASGIClient

from tests.api.kit.client import Client


class Direct(ASGIClient):
    """A session whose requests are answered by the app before they return; it has an event loop of its own."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self.trust_env = False
        self._runner = asyncio.Runner()
        self.mount("http://", _Adapter(Client(app, {"host": HOST}), self._runner))

    def __enter__(self) -> Direct:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.__exit__(kind, error, trace)
        self.close()


class _Adapter(HTTPAdapter):
    def __init__(self, client: Client, runner: asyncio.Runner) -> None:
        super().__init__()
        self._client = client
        self._runner = runner

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        return self._runner.run(self._answered(request))

    async def _answered(self, request: requests.PreparedRequest) -> requests.Response:
        assert request.method is not None
        body = request.body or b""
        assert isinstance(body, str | bytes)
        answer = await self._client.call(
            request.method,
            urlsplit(request.url or "")._replace(scheme="", netloc="", fragment="").geturl(),
            body=body.encode() if isinstance(body, str) else body,
            headers={name: str(value) for name, value in request.headers.items()},
            # Never: it waits for its answer.
            hangs_up=asyncio.Event(),
        )
        raw = urllib3.HTTPResponse(
            body=io.BytesIO(answer.body),
            headers=answer.headers,
            status=answer.status,
            reason=HTTPStatus(answer.status).phrase,
            version=11,
            preload_content=False,
            request_method=request.method,
        )
        response: requests.Response = self.build_response(request, raw)
        return response

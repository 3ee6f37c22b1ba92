"""What a redirect asks for next. Secrets stay behind when it leads to another host."""

from __future__ import annotations

import msgspec

from ksana.targets.http.destinations import redirected
from ksana.targets.http.plans import Request, line_of
from ksana.targets.http.redaction import Secrets

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_OF_THE_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})


def next_request(request: Request, status: int, location: str, secrets: Secrets) -> Request:
    """The request a redirect leads to, or ValueError if its Location leads nowhere.

    The callback URL and token go along: they are good for this run only, and whoever sends us on has them.
    """
    to = redirected(request.to, location)
    following = msgspec.structs.replace(request, to=to, head=b"")
    # As browsers do, and as RFC 9110 allows for old servers that mean 303 by it.
    becomes_get = (status == 303 and request.method != "HEAD") or (status in (301, 302) and request.method == "POST")
    if becomes_get:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_BODY}
        following = msgspec.structs.replace(following, method="GET", headers=headers, body=b"")
    if not request.to.shares_credentials_with(to):
        following = msgspec.structs.replace(
            following,
            headers={k: v for k, v in secrets.without(following.headers).items() if k.lower() != "host"},
            has_secrets=False,
            has_host=False,
            is_signed=False,
        )
    return msgspec.structs.replace(following, line=line_of(following.method, to, following.token))

"""What surfaces are built on: a table of routes in, an ASGI app out."""

from ksana.api.kit.app import build_app
from ksana.api.kit.call import Call, Principal, Reply
from ksana.api.kit.errors import ErrorStyle
from ksana.api.kit.etag import etag
from ksana.api.kit.keys import KeyRing
from ksana.api.kit.paging import Page, PageQuery, page_of
from ksana.api.kit.request_ids import current_request_id
from ksana.api.kit.routes import PUBLIC, Route, RouteError, Surface
from ksana.api.kit.strict_json import Input
from ksana.api.kit.wire import Timestamp, encode, timestamp
from ksana.domain.keys import Scope

__all__ = [
    "PUBLIC",
    "Call",
    "ErrorStyle",
    "Input",
    "KeyRing",
    "Page",
    "PageQuery",
    "Principal",
    "Reply",
    "Route",
    "RouteError",
    "Scope",
    "Surface",
    "Timestamp",
    "build_app",
    "current_request_id",
    "encode",
    "etag",
    "page_of",
    "timestamp",
]

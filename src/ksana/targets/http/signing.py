"""Standard Webhooks signatures: the receiver can tell that a call comes from this server, and when."""

from __future__ import annotations

import hmac
from base64 import b64encode
from datetime import datetime

SIGNATURE_HEADERS = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})


def signature_headers(secret: bytes, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The three headers for this body. The id is the run's, so that a repeated delivery can be recognised."""
    timestamp = str(int(now.timestamp()))
    signed = hmac.digest(secret, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{b64encode(signed).decode('ascii')}",
    }

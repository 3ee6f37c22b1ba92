"""Secrets are masked in the finished line, so that none can slip past in an exception, a field or another's message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
_MASKED: Final = rf"\g<1>{MASK}"

# Shorter ones would mask ordinary words.
_SHORTEST_SECRET: Final = 6

# What may stand between the name of a secret and its value: quotes, maybe escaped because the text is itself quoted.
_QUOTE: Final = r"\\*[\"']"
_VALUE: Final = r"[^\s\"'\\]+"
_COOKIE: Final = r"[^\s\"'\\;]+"
_NAMES: Final = ("token", "password", "passwd", "secret", "signature", "api_key", "api-key", "apikey")
_NAME: Final = "|".join(_NAMES)

# Each with the words without which it cannot match: to look for those is ten times cheaper, and most lines have none.
# The first group stays and the rest goes. None may begin with an open-ended repeat: on a long line that would cost the
# square of its length. No value reaches over a quote or a backslash, so JSON stays JSON.
_PATTERNS: Final = tuple(
    (words, re.compile(pattern, re.IGNORECASE))
    for words, pattern in (
        (("ksk_",), r"(ksk_(?:[0-9a-f]{16}_)?)\w+"),
        (
            ("authorization",),
            rf"(authorization(?:{_QUOTE})?\s*[:=,]\s*(?:b?{_QUOTE})?(?:(?:bearer|basic|digest|token)\s+)?){_VALUE}",
        ),
        (("bearer",), rf"(bearer\s+)(?!\*){_VALUE}"),
        (("cookie",), rf"(cookie(?:{_QUOTE})?\s*[:=,]\s*(?:b?{_QUOTE})?){_COOKIE}(?:;\s*{_COOKIE})*"),
        (("@",), r"(://[^\s/?#@:\"'\\]*:)[^\s/?#\"'\\]+(?=@)"),
        # Also as one URL stands in the query of another.
        (("callbacks",), r"((?:/|%2f)callbacks(?:/|%2f))[^\s/?#&%\"'\\]{16,}"),
        (_NAMES, rf"((?:{_NAME}){_QUOTE}\s*[:,]\s*b?{_QUOTE})[^\"'\\]+"),
        (_NAMES, rf"((?:{_NAME})\s*=\s*(?:{_QUOTE})?)[^\s\"'\\&,;]+"),
        (("x-",), rf"(x-(?:callback-token|api-key)\s*:\s*){_VALUE}"),
    )
)


class Redactor:
    """Masks what looks like a secret (keys, credentials in headers and URLs, callback tokens) and the given ones."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        spellings = known | {json.dumps(secret)[1:-1] for secret in known}
        longest_first = sorted(spellings, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        lower = text.lower()
        for words, pattern in _PATTERNS:
            if any(word in lower for word in words):
                text = pattern.sub(_MASKED, text)
        return text

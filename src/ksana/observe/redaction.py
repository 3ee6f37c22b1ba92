"""Secrets are masked in the finished line, so that none can slip past in an exception, a field or another's message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"

# Shorter ones would mask ordinary words.
_SHORTEST_SECRET: Final = 6

# What may stand between the name of a secret and its value: quotes, maybe escaped because the text is itself quoted.
_QUOTE: Final = r"\\*[\"']"
_VALUE: Final = r"[^\s\"'\\]+"

# In each the first group stays and the rest goes. None may begin with an open-ended repeat: on a long line that would
# cost the square of its length. No value reaches over a quote or a backslash, so JSON stays JSON.
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(ksk_[0-9a-f]{16}_)\w+",
        r"(ksk_)(?![0-9a-f]{16}_\*)\w+",
        rf"(authorization(?:{_QUOTE})?\s*[:=,]\s*b?(?:{_QUOTE})?(?:(?:bearer|basic|digest|token)\s+)?){_VALUE}",
        rf"(\bbearer\s+)(?!\*){_VALUE}",
        rf"(\bcookie(?:{_QUOTE})?\s*[:=,]\s*b?(?:{_QUOTE})?){_VALUE}(?:;\s*{_VALUE})*",
        r"(://[^\s/?#@:\"'\\]*:)[^\s/?#\"'\\]+(?=@)",
        r"(/callbacks/)[^\s/?#\"'\\]{16,}",
        rf"((?:token|password|passwd|secret|api[_-]?key){_QUOTE}\s*[:,]\s*b?{_QUOTE})[^\"'\\]+",
        rf"((?:token|password|passwd|secret|signature|api[_-]?key)\s*=\s*(?:{_QUOTE})?)[^\s\"'\\&,;]+",
        rf"(x-(?:callback-token|api-key)\s*:\s*){_VALUE}",
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
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\g<1>{MASK}", text)
        return text

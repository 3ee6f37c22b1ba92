"""Heads of answers that were read before. Whoever answers many calls mostly says the same in front of the body, and
what the parser made of it once it would make of it again."""

from __future__ import annotations

from typing import NamedTuple

from ksana.targets.http.answers import Answer

_MOST_HEADS = 512
_LONGEST_HEAD = 2048
_END = b"\r\n\r\n"


class _Head(NamedTuple):
    status: int
    headers: dict[str, str]
    whole: int
    """How long the answer is, with its head."""


class KnownHeads:
    """What the heads seen last mean. Only answers that come in one piece, and leave the connection open, are known."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Head] = {}

    def __len__(self) -> int:
        return len(self._known)

    def answer(self, data: bytes, most: int) -> Answer | None:
        """The answer, if this is a whole one with a head that is known, and a body of at most so many bytes."""
        end = data.find(_END) + len(_END)
        head = self._known.get(data[:end])
        if head is None or len(data) != head.whole or len(data) - end > most:
            return None
        return Answer(head.status, head.headers, data[end:], False)

    def learn(self, data: bytes, answer: Answer) -> None:
        """Remember what the parser has read in one piece, if the head alone says where such an answer ends."""
        end = data.find(_END) + len(_END)
        # An interim answer before it, or a body that says by itself where it ends.
        is_plain = answer.body == data[end:] and "transfer-encoding" not in answer.headers and not answer.truncated
        if not is_plain or end > _LONGEST_HEAD:
            return
        if len(self._known) >= _MOST_HEADS:
            self._known.clear()
        self._known[data[:end]] = _Head(answer.status, answer.headers, len(data))

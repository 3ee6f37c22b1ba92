"""Values written into statements as bytes, exactly: the server gets what it is told, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ksana.domain.errors import InvalidArgument
from ksana.stores.sql.compile import Compiled

# Statements larger than a server's packet are refused; bodies may be megabytes, so rows are sent in bounded pieces.
_STATEMENT_BYTES = 1 << 20


def literal(value: Any) -> bytes:
    """A value as SQL, on a session whose strings know backslashes."""
    if value is None:
        return b"NULL"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, str):
        return b"'%b'" % _escaped(_encoded(value))
    # Only what would end the string is escaped: a body near the size of a packet must not grow beyond it.
    return b"_binary'%b'" % _escaped(value)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument.of("", f"the database cannot hold this text: {error}") from error


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b"'", b"\\'")


def written_out(compiled: Compiled, values: dict[str, Any]) -> bytes:
    """A statement with its values in their places."""
    text = [compiled.parts[0].encode()]
    for name, is_list, part in zip(compiled.names, compiled.lists, compiled.parts[1:], strict=True):
        if is_list:
            # An empty list matches nothing; SQL has no empty IN.
            text += [b"IN (", b",".join(map(literal, values[name])) or b"NULL", b")"]
        else:
            text.append(literal(values[name]))
        text.append(part.encode())
    return b"".join(text)


def pieces(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[bytes]]:
    """Rows as the VALUES of INSERTs, in pieces of bounded size."""
    piece: list[bytes] = []
    size = 0
    for row in rows:
        text = b"(%b)" % b",".join([literal(value) for value in row])
        if piece and size + len(text) > _STATEMENT_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    if piece:
        yield piece

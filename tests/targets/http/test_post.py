"""What comes in on one turn of the loop is read together; nothing of it is taken for something else."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ksana.targets.http.answers import Answer
from ksana.targets.http.deadlines import Deadlines
from ksana.targets.http.known_heads import KnownHeads
from ksana.targets.http.post import Post
from ksana.targets.http.wire import BrokenError, Connection, GarbledError, LateError, LostError, UnsentError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"


class Wire(asyncio.Transport):
    """A transport that writes down what it is told to do."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({"socket": end})
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.is_aborted = True

    def get_write_buffer_size(self) -> int:
        return 0


class Line:
    """A connection on such a transport, with what it tells."""

    def __init__(self, end: socket.socket, deadlines: Deadlines, post: Post) -> None:
        self.wire = Wire(end)
        self.connection = Connection(deadlines, KnownHeads(), post)
        self.connection.connection_made(self.wire)
        self.told: list[Answer | LostError] = []

    def ask(self, request: bytes = b"ask", deadline: float = 1e9) -> None:
        self.connection.ask(request, False, 1000, deadline, self.told.append)

    @property
    def bodies(self) -> list[bytes]:
        return [said.body for said in self.told if isinstance(said, Answer)]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.fixture
async def line(ends: tuple[socket.socket, socket.socket]) -> Line:
    return Line(ends[0], Deadlines(), Post())


async def a_round() -> None:
    await asyncio.sleep(0)


async def test_what_is_asked_goes_out_with_the_next_round(line: Line) -> None:
    line.ask()
    assert line.wire.written == []
    await a_round()
    assert line.wire.written == [b"ask"]


async def test_an_answer_is_read_with_the_next_round(line: Line) -> None:
    line.ask()
    await a_round()
    line.connection.data_received(OK[:20])
    line.connection.data_received(OK[20:])
    assert line.told == []
    await a_round()
    assert line.bodies == [b"ok"]
    assert line.connection.is_reusable


async def test_a_second_answer_on_the_same_turn_is_nobodys(line: Line) -> None:
    line.ask()
    await a_round()
    line.connection.data_received(OK)
    line.connection.data_received(EVIL)
    await a_round()
    assert line.bodies == [b"ok"]
    assert not line.connection.is_reusable
    assert line.wire.is_aborted


async def test_words_on_an_idle_connection_end_it_at_once(line: Line) -> None:
    line.ask()
    await a_round()
    line.connection.data_received(OK)
    await a_round()
    line.connection.data_received(EVIL)
    assert not line.connection.is_reusable
    assert line.wire.is_aborted


async def used(line: Line) -> None:
    """Have the connection serve a first exchange."""
    line.ask()
    await a_round()
    line.connection.data_received(OK)
    await a_round()
    assert line.connection.is_reusable
    line.told.clear()
    line.wire.written.clear()


async def test_words_that_come_before_the_request_has_gone_are_not_its_answer(line: Line) -> None:
    await used(line)
    line.ask()
    line.connection.data_received(EVIL)
    [said] = line.told
    assert isinstance(said, UnsentError)
    await a_round()
    assert line.wire.written == []
    assert len(line.told) == 1


async def test_nothing_is_sent_where_something_has_come_in_unasked(
    line: Line, ends: tuple[socket.socket, socket.socket]
) -> None:
    await used(line)
    ends[1].send(EVIL)
    line.ask()
    await a_round()
    [said] = line.told
    assert isinstance(said, UnsentError)
    assert line.wire.written == []
    assert line.wire.is_aborted


@pytest.mark.parametrize("is_used", [True, False])
async def test_a_connection_that_is_closed_unheard_of_takes_nothing_with_it(
    ends: tuple[socket.socket, socket.socket], is_used: bool
) -> None:
    post = Post()
    closed, other = Line(ends[0], Deadlines(), post), Line(ends[0], Deadlines(), post)
    if is_used:
        await used(closed)

    def refuse(data: Any) -> None:
        raise RuntimeError("the handler is closed")

    closed.wire.write = refuse  # type: ignore[method-assign]
    closed.ask()
    other.ask()
    await a_round()
    [said] = closed.told
    assert isinstance(said, UnsentError if is_used else BrokenError)
    assert other.wire.written == [b"ask"]


async def test_a_peer_that_speaks_first_on_a_new_connection_is_heard(line: Line) -> None:
    line.ask()
    line.connection.data_received(b"220 mail.example ESMTP\r\n")
    await a_round()
    [said] = line.told
    assert isinstance(said, GarbledError)


async def test_an_answer_that_is_there_when_the_time_is_up_counts(line: Line) -> None:
    connection = line.connection

    def again(said: Answer | LostError) -> None:
        line.told.append(said)
        line.ask(b"again")

    connection.ask(b"ask", False, 1000, 1e9, again)
    await a_round()
    connection.data_received(OK)
    connection._expire()
    assert line.bodies == [b"ok"]
    await a_round()
    assert line.wire.written == [b"ask", b"again"]
    assert not line.wire.is_aborted
    connection._expire()
    assert isinstance(line.told[-1], LateError)


async def test_an_answer_that_came_before_the_end_counts(line: Line) -> None:
    line.ask()
    await a_round()
    line.connection.data_received(OK)
    line.connection.eof_received()
    line.connection.connection_lost(None)
    assert line.bodies == [b"ok"]
    assert not line.connection.is_reusable
    await a_round()
    assert len(line.told) == 1


async def test_an_end_that_is_heard_of_before_the_answer_is_read_is_not_forgotten(line: Line) -> None:
    line.ask()
    await a_round()
    line.connection.data_received(OK)
    line.connection.eof_received()
    await a_round()
    assert line.bodies == [b"ok"]
    assert not line.connection.is_reusable


async def test_what_was_left_is_not_sent(line: Line) -> None:
    line.ask()
    line.connection.leave()
    await a_round()
    assert line.wire.written == []
    assert line.told == []


async def test_all_that_came_is_read_before_anything_is_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    post, order = Post(), list[str]()

    class Noted(Line):
        def __init__(self, name: str) -> None:
            super().__init__(ends[0], Deadlines(), post)
            self.wire.write = lambda data: order.append(f"{name} writes")  # type: ignore[method-assign]
            self.name = name

        def again(self, said: Answer | LostError) -> None:
            order.append(f"{self.name} reads")
            self.ask()

    lines = [Noted("one"), Noted("other")]
    for line in lines:
        line.connection.ask(b"ask", False, 1000, 1e9, line.again)
    await a_round()
    for line in lines:
        line.connection.data_received(OK)
    await a_round()
    assert order[2:] == ["one reads", "other reads", "one writes", "other writes"]


async def test_whoever_fails_does_not_keep_others_from_reading(
    ends: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    post = Post()
    bad, good = Line(ends[0], Deadlines(), post), Line(ends[0], Deadlines(), post)

    def fail(said: Answer | LostError) -> None:
        raise RuntimeError("no")

    bad.connection.ask(b"ask", False, 1000, 1e9, fail)
    good.ask()
    await a_round()
    bad.connection.data_received(OK)
    good.connection.data_received(OK)
    with caplog.at_level(logging.ERROR):
        await a_round()
    assert good.bodies == [b"ok"]
    assert "could not be told" in caplog.text

"""The choice of connections to close at the limit."""

from __future__ import annotations

import logging

import pytest

from memory_gateway.server.connections import ConnectionTable


class FakeConnection:
    """Stays open, as a transport does until the event loop runs again, after it gave way."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.has_given_way = False

    def close_now(self) -> None:
        self.has_given_way = True


class Crowd:
    """A table with the connections that it admitted or is about to lose."""

    def __init__(self, total: int, per_address: int) -> None:
        self.table = ConnectionTable(total=total, per_address=per_address, clock=lambda: 0.0)
        self.open: list[FakeConnection] = []

    def connect(self, address: str | None, *, is_busy: bool = False) -> FakeConnection | None:
        connection = FakeConnection(address)
        self.open.append(connection)
        if not self.table.admit(connection, open_connections=len(self.open)):
            return None
        if is_busy:
            self.table.mark_busy(connection)
        return connection

    def run_loop(self) -> None:
        for connection in [connection for connection in self.open if connection.has_given_way]:
            self.lose(connection)

    def lose(self, connection: FakeConnection) -> None:
        self.open.remove(connection)
        self.table.remove(connection)


def test_the_connection_that_is_idle_longest_gives_way() -> None:
    crowd = Crowd(total=4, per_address=2)
    first, second, third, fourth = (crowd.connect(address) for address in "abcd")
    assert first
    assert second
    crowd.table.mark_busy(first)
    crowd.table.mark_idle(first)
    assert crowd.connect("e")
    assert [one.has_given_way for one in (first, second, third, fourth) if one] == [False, True, False, False]


def test_busy_connections_do_not_give_way() -> None:
    crowd = Crowd(total=2, per_address=2)
    busy = [crowd.connect(address, is_busy=True) for address in "ab"]
    assert crowd.connect("c") is None
    assert not any(one.has_given_way for one in busy if one)


def test_an_address_at_its_limit_closes_its_own_connections_only() -> None:
    crowd = Crowd(total=100, per_address=3)
    other = crowd.connect("b")
    flood = [crowd.connect("a") for _ in range(10)]
    assert other
    assert not other.has_given_way
    assert [one.has_given_way for one in flood if one] == [True] * 7 + [False] * 3


def test_an_address_gets_at_most_half_of_all() -> None:
    assert ConnectionTable(total=10, per_address=1000).per_address == 5


def test_a_burst_before_anything_is_closed_counts_once() -> None:
    """Connections that gave way are still open when the next ones come."""
    crowd = Crowd(total=5, per_address=5)
    for _ in range(3):
        for number in range(20):
            assert crowd.connect(str(number))
        crowd.run_loop()
        assert len(crowd.open) == 5


def test_refused_connections_take_no_place() -> None:
    crowd = Crowd(total=2, per_address=1)
    busy = crowd.connect("a", is_busy=True)
    assert [crowd.connect("a"), crowd.connect("a")] == [None, None]
    assert busy
    crowd.lose(busy)
    assert crowd.connect("a")


def test_closed_connections_leave_nothing_behind() -> None:
    crowd = Crowd(total=5, per_address=2)
    for address in "aabbcc":
        crowd.connect(address)
    for connection in list(crowd.open):
        crowd.table.mark_busy(connection)
        crowd.lose(connection)
        crowd.table.mark_busy(connection)
    table = crowd.table
    assert not any((table._idle, table._idle_of, table._counts, table._closing))


def test_the_log_says_once_a_minute_that_all_are_in_use(caplog: pytest.LogCaptureFixture) -> None:
    crowd = Crowd(total=2, per_address=2)
    with caplog.at_level(logging.WARNING, logger="memory_gateway.server.connections"):
        for number in range(10):
            crowd.connect(str(number))
    assert [record.getMessage() for record in caplog.records] == [
        "All 2 connections are in use. Idle connections are closed for new ones."
    ]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("10.1.2.3", None),
        ("::ffff:10.1.2.3", None),
        ("2001:db8:ffff::1", None),
        ("", ""),
    ],
)
def test_an_address_is_counted_under_its_network_unless_it_is_trusted(host: str, address: str | None) -> None:
    table = ConnectionTable(total=10, per_address=5, trusted_proxies=["10.0.0.0/8", "2001:db8:ffff::1"])
    assert table.address_of(host) == address

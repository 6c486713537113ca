"""The position of a caller's last write is never lowered, and an unknown one keeps reads on the primary."""

from core.persistence.recent_writes import UNKNOWN, InProcess
from core.persistence.shared_writes import InRedis


def test_a_position_is_raised_and_belongs_to_its_caller() -> None:
    writes = InProcess()
    assert [writes.add("user:1", lsn) for lsn in (20, 10)] == [True, True]
    assert (writes.of("user:1"), writes.of("user:2")) == (20, 0)


def test_old_positions_are_dropped_not_recent_ones() -> None:
    writes = InProcess()
    for number in range(3000):
        writes.add(f"user:{number}", number + 1)
    assert all(writes.of(f"user:{number}") == number + 1 for number in range(3000))


def test_without_redis_no_position_is_known() -> None:
    writes = InRedis("redis://127.0.0.1:1/0")
    assert not writes.add("user:1", 20)
    assert writes.of("user:1") == UNKNOWN

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.limits.rate_limit import TokenBuckets, network_of


class Clock:
    """A clock that the test moves."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_full_bucket_holds_the_tokens_of_a_minute() -> None:
    buckets = TokenBuckets(10, clock=Clock())
    assert [buckets.take("a") for _ in range(10)] == [0.0] * 10
    assert buckets.take("a") > 0


def test_take_from_an_empty_bucket_returns_the_seconds_until_the_next_token() -> None:
    clock = Clock()
    buckets = TokenBuckets(10, clock=clock)
    for _ in range(10):
        buckets.take("a")
    assert round(buckets.take("a"), 6) == 6.0
    clock.now += 5.9
    assert buckets.take("a") > 0
    clock.now += 0.1
    assert buckets.take("a") == 0.0
    assert round(buckets.take("a"), 6) == 6.0


def test_every_name_has_a_separate_bucket() -> None:
    buckets = TokenBuckets(1, clock=Clock())
    assert buckets.take("a") == 0.0
    assert buckets.take("b") == 0.0
    assert buckets.take("a") > 0


def test_a_refused_take_costs_no_token() -> None:
    clock = Clock()
    buckets = TokenBuckets(60, clock=clock)
    for _ in range(600):
        buckets.take("a")
    clock.now += 1.0
    assert buckets.take("a") == 0.0


def test_a_bucket_refills_to_its_maximum_only() -> None:
    clock = Clock()
    buckets = TokenBuckets(5, clock=clock)
    for _ in range(5):
        buckets.take("a")
    clock.now += 3600
    assert sum(buckets.take("a") == 0.0 for _ in range(20)) == 5


def test_wait_seconds_takes_no_token() -> None:
    buckets = TokenBuckets(1, clock=Clock())
    assert [buckets.wait_seconds("a") for _ in range(3)] == [0.0] * 3
    buckets.take("a")
    assert round(buckets.wait_seconds("a")) == 60


def test_zero_tokens_per_minute_mean_no_limit() -> None:
    buckets = TokenBuckets(0, clock=Clock())
    assert {buckets.take("a") for _ in range(1000)} == {0.0}
    assert buckets.wait_seconds("a") == 0.0


def test_new_names_replace_the_least_recently_used_bucket() -> None:
    buckets = TokenBuckets(1, max_names=3, clock=Clock())
    for name in ("quiet", "flood", "c"):
        buckets.take(name)
    assert buckets.take("flood") > 0
    buckets.take("d")
    assert buckets.take("flood") > 0
    assert buckets.take("quiet") == 0.0


@given(st.integers(1, 1000), st.lists(st.floats(0, 30), max_size=60), st.integers(1, 40))
def test_no_minute_gives_more_than_twice_the_tokens_of_a_minute(
    per_minute: int, pauses: list[float], attempts: int
) -> None:
    """At most a full bucket and a minute's refill come together; in the long run only the rate counts."""
    clock = Clock(0.0)
    buckets = TokenBuckets(per_minute, clock=clock)
    taken = []
    for pause in pauses:
        clock.now += pause
        taken += [clock.now for _ in range(attempts) if buckets.take("a") == 0.0]
    for start in taken:
        assert sum(start <= at < start + 60 for at in taken) <= 2 * per_minute
    assert len(taken) <= per_minute * (1 + clock.now / 60) + 1


def test_threads_share_the_tokens_of_a_bucket() -> None:
    buckets = TokenBuckets(500, clock=Clock())
    taken: list[float] = []

    def take() -> None:
        taken.extend(buckets.take("a") for _ in range(200))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(0.0) == 500


def test_the_burst_may_be_smaller_than_the_tokens_of_a_minute() -> None:
    clock = Clock()
    buckets = TokenBuckets(600, burst=3, clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0.0] * 3
    assert round(buckets.take("a"), 6) == 0.1
    clock.now += 60
    assert [buckets.take("a") for _ in range(3)] == [0.0] * 3
    assert buckets.take("a") > 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("", "unknown"),
    ],
)
def test_ipv6_addresses_count_as_their_network(address: str, network: str) -> None:
    assert network_of(address) == network

from __future__ import annotations

import os
import subprocess
import sys

from core.background.leases import is_dead, new_holder


def test_each_new_holder_is_different() -> None:
    first, second = new_holder(), new_holder()
    assert first != second
    assert len(first) <= 128


def test_a_holder_of_this_process_is_alive() -> None:
    assert not is_dead(new_holder())


def test_a_holder_whose_process_has_ended_is_dead() -> None:
    host, _, random = new_holder().rsplit(":", 2)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_dead(f"{host}:{ended.pid}:{random}")


def test_a_holder_whose_process_is_a_zombie_is_dead() -> None:
    host, _, random = new_holder().rsplit(":", 2)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert not is_dead(f"{host}:{child.pid}:{random}")
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # leaves it a zombie
    assert is_dead(f"{host}:{child.pid}:{random}")
    child.wait()


def test_a_holder_of_an_earlier_process_with_the_same_pid_is_dead() -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    assert is_dead(f"{host}:{pid}:0123456789abcdef")


def test_a_holder_of_another_machine_counts_as_alive() -> None:
    assert not is_dead("elsewhere:1:x")
    assert not is_dead("")
    assert not is_dead("nonsense")

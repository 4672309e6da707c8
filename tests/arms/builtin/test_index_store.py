"""Indexes shared by the sessions of a process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from coldrun.tasks.arms.builtin.index_store import IndexStore, process_store


def test_get_many_threads_build_once() -> None:
    """Whoever comes while an index is built waits for it."""
    store, builds, gate = IndexStore(), [], threading.Event()

    def build() -> str:
        builds.append(1)
        gate.wait(5)
        return "index"

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(store.get, "key", build) for _ in range(6)]
        gate.set()
        assert [future.result() for future in futures] == ["index"] * 6
    assert len(builds) == 1


def test_get_over_capacity_forgets_the_least_used() -> None:
    """The index that was not asked for longest is built again."""
    store, builds = IndexStore(capacity=2), []
    for key in ("a", "b", "a", "c", "a", "b"):
        store.get(key, lambda key=key: builds.append(key))
    assert builds == ["a", "b", "c", "b"]


def test_get_failed_build_is_tried_again() -> None:
    """A failure reaches the caller and is not remembered."""
    store = IndexStore()
    with pytest.raises(ZeroDivisionError):
        store.get("key", lambda: 1 // 0)
    assert store.get("key", lambda: 7) == 7


def test_process_store_is_one() -> None:
    """Sessions that were given no store meet in the same one."""
    assert process_store() is process_store()

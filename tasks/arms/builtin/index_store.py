"""Indexes that sessions of one process share: built once, the least used forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar, cast

Index = TypeVar("Index")


class IndexStore:
    """At most `capacity` indexes, by key. Threads that want the same one wait for one build."""

    def __init__(self, capacity: int = 6) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._indexes: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, build: Callable[[], Index]) -> Index:
        """The index under `key`, built by the first who asks. A failed build is not kept.

        The key must name everything that decides what `build` returns, and its type.
        """
        with self._lock:
            future = self._indexes.get(key)
            is_builder = future is None
            if future is None:
                future = Future()
                self._indexes[key] = future
                while len(self._indexes) > self._capacity:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(key)
        if is_builder:
            self._build(key, future, build)
        return cast("Index", future.result())

    def _build(self, key: Hashable, future: Future[Any], build: Callable[[], object]) -> None:
        try:
            future.set_result(build())
        except BaseException as error:
            with self._lock:
                if self._indexes.get(key) is future:
                    del self._indexes[key]
            future.set_exception(error)
            raise


@cache
def process_store() -> IndexStore:
    """The store of this process, for sessions that were given none."""
    return IndexStore()

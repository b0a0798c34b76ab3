"""A cache of arrays that is bounded by their bytes, for all threads of a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from engine.types import Array


class ArrayCache:
    """Keeps the arrays that were asked for last, up to `most_bytes` in all; an array is never changed."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._arrays: OrderedDict[Hashable, Array] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """The size of all arrays that are kept."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], Array]) -> Array:
        """Return the array of a key; `make` computes it where it is not kept, outside of the lock."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        made = make()
        with self._lock:
            if key not in self._arrays:
                self._arrays[key] = made
                self._bytes += made.nbytes
            while self._bytes > self.most_bytes:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
        return made

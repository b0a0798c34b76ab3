"""A cache that is bounded by the bytes of what it keeps, for all threads of a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What says how many bytes it takes: an array, or a recording."""

    @property
    def nbytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Sized)


class BoundedCache(Generic[Kept]):
    """Keeps what was asked for last, up to `most_bytes` in all; what is kept is never changed."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """The size of all that is kept."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what a key stands for; `make` computes it where it is not kept, outside of the lock."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            # of two threads that computed it, all get the first one's
            if key in self._kept:
                return self._kept[key]
            self._kept[key] = made
            self._bytes += made.nbytes
            while self._bytes > self.most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return made

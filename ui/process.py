"""What the server process needs once, whoever is reading."""

from __future__ import annotations

import gc
from functools import lru_cache

# allocations before a young, a middle and a full collection
THRESHOLDS = (50_000, 20, 50)


@lru_cache(maxsize=1)
def settle() -> None:
    """Keep Python's collector off what lives as long as the server.

    A full collection looks at every object of every session: with 200 readers it stopped all of
    them for 200 ms and more. What is loaded by now never becomes garbage, so it is set aside.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)

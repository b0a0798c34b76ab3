"""From a row of token ids to what training reads: windows, targets one token further on, and batches.

Source: "LLM System", training flow; the cutting is that of GPT-2's training codes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.types import Integers


def windows(count: int, block: int, stride: int) -> range:
    """Where the windows of T = `block` tokens begin: 0, stride, 2·stride, …, as long as a token stands behind them.

    Of n = `count` tokens that makes ⌈(n − T) / stride⌉ windows, or none. Raises `ValueError` for a
    block or a stride below 1.
    """
    if block < 1 or stride < 1:
        raise ValueError(f"block {block} and stride {stride} must be at least 1")
    return range(0, max(count - block, 0), stride)


def shuffled(starts: Sequence[int], seed: int) -> tuple[int, ...]:
    """The windows in an order drawn from `seed`; seed 0 leaves them as they stand in the text."""
    if seed == 0:
        return tuple(starts)
    return tuple(starts[place] for place in np.random.default_rng(seed).permutation(len(starts)).tolist())


def batches(starts: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """The windows in batches of B = `size`; the last one may have fewer."""
    return [tuple(starts[first:first + size]) for first in range(0, len(starts), size)]


def pairs(ids: Sequence[int], starts: Sequence[int], block: int) -> tuple[Integers, Integers]:
    """inputs[b,t] = ids[start_b + t] and targets[b,t] = ids[start_b + t + 1], both [B,T]."""
    places = np.array(starts, dtype=np.int64)[:, None] + np.arange(block)
    tokens = np.array(ids, dtype=np.int64)
    return tokens[places], tokens[places + 1]

"""Which cells of its inputs an output cell is made from, read off a node's axis maps.

A map holds one entry per axis of an input:
`("axis", k)` the output's index k · `("sum", j)` every value of the j-th summed index ·
`("sum_shift", j, n)` the same plus n · `("before", k, own)` every index below k, with `own` k too ·
`("after", k, own, size)` every index above k, with `own` k too ·
`("fixed", n)` always n · `("shift", k, n)` the output's index k plus n · `("within", k, n, size)`
index k minus n where that is one of 0 … size − 1, else no cell · `("ids",)` the token id at the
output's (batch, position) · `("target",)` the target there · `("split", h, d, D)` h·D + d · `("head", c, D)` c // D ·
`("feature", c, D)` c % D · `("pair", k, pairing, D)` both members of the rotation pair that feature
k belongs to · `("frequency", k, pairing, D)` the number of that pair · `("members", k, pairing, D)`
both members of pair k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod

from engine.plan import AxisMap, Node
from engine.types import Array, Index


def operand_cells(node: Node, index: Index, ids: Array | None, most: int | None = None) -> list[list[Index]]:
    """For every input of `node`, the indices of the cells that `node[index]` is computed from.

    Inputs that are summed over together list their cells in the same order; of a sum over more
    than `most` terms, the first so many.
    """
    sums = list(islice(product(*(range(size) for size in node.summed)), most))
    return [
        list(islice((cell for assignment in sums for cell in _cells(entries, index, assignment, ids)), most))
        for entries in node.maps
    ]


def term_count(node: Node, index: Index) -> int:
    """How many terms the sum behind `node[index]` has; 1 where nothing is summed."""
    reached = (
        len(_choices(entry, index, (), None)) for entries in node.maps for entry in entries
        if entry[0] in ("before", "after")
    )
    return prod(node.summed) * prod(reached)


def _cells(entries: tuple[AxisMap, ...], index: Index, sums: Index, ids: Array | None) -> Iterator[Index]:
    return product(*(_choices(entry, index, sums, ids) for entry in entries))


def _choices(entry: AxisMap, index: Index, sums: Index, ids: Array | None) -> Sequence[int]:
    match entry:
        case ("axis", axis):
            return (index[axis],)
        case ("sum", number):
            return (sums[number],)
        case ("sum_shift", number, first):
            return (sums[number] + first,)
        case ("before", axis, own):
            return range(index[axis] + own)
        case ("after", axis, own, size):
            return range(index[axis] + (not own), size)
        case ("fixed", number):
            return (number,)
        case ("shift", axis, number):
            return (index[axis] + number,)
        case ("within", axis, number, size):
            place = index[axis] - number
            return (place,) if 0 <= place < size else ()
        case ("ids",) | ("target",):
            if ids is None:
                raise ValueError("a row by its token needs the token ids")
            return (int(ids[index[0], index[1]]),)
        case ("split", head_axis, feature_axis, size):
            return (index[head_axis] * size + index[feature_axis],)
        case ("head", axis, size):
            return (index[axis] // size,)
        case ("feature", axis, size):
            return (index[axis] % size,)
        case ("pair", axis, pairing, size):
            return pair_members(pair_number(index[axis], pairing, size), pairing, size)
        case ("frequency", axis, pairing, size):
            return (pair_number(index[axis], pairing, size),)
        case ("members", axis, pairing, size):
            return pair_members(index[axis], pairing, size)
    raise ValueError(f"no such axis map: {entry}")


def pair_number(feature: int, pairing: str, size: int) -> int:
    """The rotation pair of a head feature: feature // 2 if interleaved, feature mod D/2 if half."""
    return feature // 2 if pairing == "interleaved" else feature % (size // 2)


def pair_members(pair: int, pairing: str, size: int) -> tuple[int, int]:
    """The two head features of a pair: (2p, 2p+1) if interleaved, (p, p + D/2) if half."""
    return (2 * pair, 2 * pair + 1) if pairing == "interleaved" else (pair, pair + size // 2)

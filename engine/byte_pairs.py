"""Byte-level byte-pair encoding: merges learned by counting neighbours, applied in the order of learning."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[int, int]
Chunks = tuple[tuple[int, ...], ...]
# pair of ids → the id that takes its place; what was learned earlier has the lower id
Merges = Mapping[Pair, int]

# a byte is its own id, and the first merge makes 256
BYTES = range(256)
# a pair that stands in a text once shortens nothing
LEAST_COUNT = 2

_WHITE_SPACE = frozenset("\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {*map(chr, range(0x2000, 0x200B))}
_CONTRACTION = re.compile(r"'(?:s|t|re|ve|m|ll|d)")
# over one letter a character: L letter, N number, o any other sign, _ the plain space, s other white space
_CHUNK = re.compile(r"_?L+|_?N+|_?o+|[_s]+(?![LNo])|[_s]+")


@dataclass(frozen=True)
class Step:
    """A text after a merge: its ids, and how often each pair of neighbours stands in it now.

    `pair` became `token` (both None before the first merge). `chunks` holds the ids of each chunk,
    `counts` every pair of neighbours, the one that is merged next at the head.
    """

    pair: Pair | None
    token: int | None
    chunks: Chunks
    counts: tuple[tuple[Pair, int], ...]

    @property
    def next_pair(self) -> Pair | None:
        """The pair that is merged next; None where no pair stands in the text twice."""
        return self.counts[0][0] if self.counts and self.counts[0][1] >= LEAST_COUNT else None


def split(text: str) -> tuple[str, ...]:
    """Return the chunks of a text, which merges never reach across; joined, they are the text.

    A chunk is a word, a number or a run of other signs, each with the one space before it, an
    English ending such as 's, or white space. Source: the pattern of GPT-2's tokenizer.
    """
    kinds = "".join(map(_kind, text))
    chunks, place = [], 0
    while place < len(text):
        match = _CONTRACTION.match(text, place) or _CHUNK.match(kinds, place)
        assert match is not None
        chunks.append(text[place:match.end()])
        place = match.end()
    return tuple(chunks)


def _kind(character: str) -> str:
    if character == " ":
        return "_"
    if character in _WHITE_SPACE:
        return "s"
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "o"


def learn(text: str, most: int) -> Iterator[Step]:
    """Yield the text as bytes, then after each of up to `most` merges of its most frequent pair.

    Of pairs that are equally frequent the one with the lower ids wins, the left id first. Learning
    ends where no pair stands in the text twice. Source: Sennrich et al. 2016, on bytes as in GPT-2.
    """
    chunks = tuple(tuple(chunk.encode()) for chunk in split(text))
    step = Step(None, None, chunks, _counts(chunks))
    yield step
    for token in range(len(BYTES), len(BYTES) + most):
        pair = step.next_pair
        if pair is None:
            return
        chunks = tuple(_merged(chunk, pair, token) for chunk in step.chunks)
        step = Step(pair, token, chunks, _counts(chunks))
        yield step


def _counts(chunks: Chunks) -> tuple[tuple[Pair, int], ...]:
    """How often each pair of neighbours stands in the chunks: the most frequent first, then the lower ids."""
    found = Counter(pair for chunk in chunks for pair in pairwise(chunk))
    return tuple(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def places(ids: Sequence[int], pair: Pair) -> tuple[int, ...]:
    """Where the pair stands among the ids, from left to right, none overlapping the one before."""
    found: list[int] = []
    for place in range(len(ids) - 1):
        if (ids[place], ids[place + 1]) == pair and (not found or place > found[-1] + 1):
            found.append(place)
    return tuple(found)


def _merged(ids: Sequence[int], pair: Pair, token: int) -> tuple[int, ...]:
    """`ids` with the token in each place of the pair."""
    merged = list(ids)
    for place in reversed(places(ids, pair)):
        merged[place:place + 2] = [token]
    return tuple(merged)


def merges(steps: Sequence[Step]) -> dict[Pair, int]:
    """The merges that steps of learning have made, in their order."""
    return {step.pair: step.token for step in steps if step.pair is not None and step.token is not None}


def encode(text: str, learned: Merges, byte_ids: Sequence[int] = BYTES) -> Chunks:
    """Return the ids of each chunk of `text`: its bytes, with the pair learned earliest merged until none is left.

    `byte_ids` [256] gives every byte its id. Any text has ids, whatever the merges were learned on.
    """
    chunks = []
    for chunk in split(text):
        ids = tuple(byte_ids[byte] for byte in chunk.encode())
        while known := [pair for pair in pairwise(ids) if pair in learned]:
            earliest = min(known, key=learned.__getitem__)
            ids = _merged(ids, earliest, learned[earliest])
        chunks.append(ids)
    return tuple(chunks)


def spellings(learned: Merges, byte_ids: Sequence[int] = BYTES) -> dict[int, bytes]:
    """The bytes that each id stands for."""
    spelled = {token: bytes([byte]) for byte, token in enumerate(byte_ids)}
    for (left, right), token in sorted(learned.items(), key=lambda entry: entry[1]):
        spelled[token] = spelled[left] + spelled[right]
    return spelled

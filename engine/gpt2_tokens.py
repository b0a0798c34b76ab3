"""What GPT-2's own tokenizer makes of the presets' words: the ids of its bytes, and the merges that they need.

GPT-2 writes a byte as a character that can be seen: a printable byte as itself, the others in order
as the characters from 256 on. Its ids 0–255 follow that order. Source: OpenAI, GPT-2, `vocab.bpe`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from engine.byte_pairs import BYTES, Chunks, Merges, encode, spellings

# single letters stand in any order, so that most of GPT-2's merges could apply to them: those are not kept
LEFT_OUT = "copy_machine"
_FILE = Path(__file__).parent.parent / "assets" / "presets" / "gpt2_merges.csv"
_PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = tuple(byte for byte in BYTES if byte not in _PRINTABLE)

# byte → its id in GPT-2, and the character that stands for it in the files of byte-level tokenizers
BYTE_IDS = tuple((*_PRINTABLE, *_OTHERS).index(byte) for byte in BYTES)
BYTE_CHARACTERS = tuple(chr(byte) if byte in _PRINTABLE else chr(256 + _OTHERS.index(byte)) for byte in BYTES)


@lru_cache(maxsize=1)
def merges() -> Merges:
    """Those of GPT-2's 50000 merges that can apply to the presets' words, but for `LEFT_OUT`'s.

    Source: `tools/make_gpt2_merges.py`.
    """
    _, *lines = _FILE.read_text(encoding="ascii").split()
    rows = (map(int, line.split(",")) for line in lines)
    return MappingProxyType({(left, right): token for left, right, token in rows})


def encode_words(text: str) -> Chunks:
    """GPT-2's ids for each chunk of a text that is made of the presets' words alone."""
    return encode(text, merges(), BYTE_IDS)


@lru_cache(maxsize=1)
def words_spellings() -> MappingProxyType[int, bytes]:
    """The bytes of every id that `encode_words` can give."""
    return MappingProxyType(spellings(merges(), BYTE_IDS))

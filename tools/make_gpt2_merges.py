"""Take from GPT-2's merges those that can apply to a text of the presets' words.

    python -m tools.make_gpt2_merges vocab.bpe            write assets/presets/gpt2_merges.csv

`vocab.bpe` (also called `merges.txt`) is published with GPT-2; line n + 1 of it makes token 256 + n.
A merge can apply only where its result stands in the text, so it is kept if its result stands in a
word with or without a space before it, or in Chinese characters of the presets in any order.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

from engine import presets
from engine.gpt2_tokens import BYTE_CHARACTERS, BYTE_IDS, LEFT_OUT
from engine.tokenizer import WordTokenizer

FILE = Path(__file__).parent.parent / "assets" / "presets" / "gpt2_merges.csv"
# a merge whose result spans more characters than this would need a longer search; GPT-2 has none here
LONGEST_RUN = 3
Row = tuple[int, int, int]


def texts() -> list[bytes]:
    """What the presets' words look like in a text, between places that no merge reaches across."""
    found = []
    for name in (name for name in presets.NAMES if name != LEFT_OUT):
        tokenizer = presets.load(name).tokenizer
        assert isinstance(tokenizer, WordTokenizer)
        words = list(tokenizer.words.values())
        if tokenizer.characters:
            found += ["".join(run) for run in product(words, repeat=LONGEST_RUN)]
        else:
            found += [text for word in words for text in (word, f" {word}")]
    return [text.encode() for text in found]


def rows(lines: list[str]) -> list[Row]:
    """Left id, right id and new id of the merges that are kept, in GPT-2's order."""
    byte_of = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
    ids = {bytes([byte]): token for byte, token in enumerate(BYTE_IDS)}
    wanted, kept = texts(), []
    for token, line in enumerate(lines, start=256):
        left, right = (bytes(byte_of[character] for character in part) for part in line.split())
        ids[left + right] = token
        if any(left + right in text for text in wanted):
            kept.append((ids[left], ids[right], token))
    return kept


def main(source: Path) -> None:
    """Write the merges that are kept."""
    _, *lines = source.read_text(encoding="utf-8").rstrip("\n").split("\n")
    table = ["left,right,token", *(",".join(map(str, row)) for row in rows(lines))]
    FILE.write_text("\n".join(table) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

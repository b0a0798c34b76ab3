"""Words to ids and back, for models whose vocabulary is a short list of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.errors import InputError

# more digits than this are no id, and Python refuses to read numbers of thousands of digits
LONGEST_NUMBER = 18

# an id may be written as the app shows it, #7
_WHOLE = re.compile(r"#?(-?[0-9]+)")
# a number, or a single character
_PIECE = re.compile(r"#?-?[0-9]+|.")


@dataclass(frozen=True, eq=False)
class WordTokenizer:
    """A dictionary of words, read without regard to case; a whole number stands for itself as an id.

    With `characters`, every word is one character, and a text need not put spaces between them.
    """

    vocab_size: int
    words: Mapping[int, str]
    characters: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", MappingProxyType(dict(self.words)))

    def encode(self, text: str) -> list[int]:
        """Return the ids [T] of the words or numbers of `text`, separated by spaces or commas.

        Raises `InputError` for an empty text, an unknown word and an id outside 0…V−1.
        """
        ids_by_word = {word.casefold(): token_id for token_id, word in self.words.items()}
        ids = []
        # full-width digits, commas and spaces of a Chinese keyboard become the plain ones
        for part in self._split(unicodedata.normalize("NFKC", text)):
            number = _WHOLE.fullmatch(part)
            if number:
                ids.append(self._id(number[1]))
            elif part.casefold() in ids_by_word:
                ids.append(ids_by_word[part.casefold()])
            else:
                raise InputError(
                    "unknown_word", f"{part!r} is not in the vocabulary: {', '.join(self.words.values())}",
                    word=part, words=tuple(self.words.values()), last_id=self.vocab_size - 1,
                )
        if not ids:
            raise InputError("empty", "the sentence has no token; give at least one")
        return ids

    def _split(self, text: str) -> list[str]:
        parts = [part for part in re.split(r"[\s,、;\[\]]+", text) if part]
        if not self.characters:
            return parts
        return [piece for part in parts for piece in _PIECE.findall(part)]

    def _id(self, digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            raise InputError("id_out_of_range", f"id {digits[:LONGEST_NUMBER]}… is outside 0…{self.vocab_size - 1}",
                             id=f"{digits[:LONGEST_NUMBER]}…", last_id=self.vocab_size - 1)
        return check_id(int(digits), self.vocab_size)

    def label(self, token_id: int) -> str:
        """The word of an id, or `#id` where the vocabulary has no word for it."""
        return self.words.get(token_id, f"#{token_id}")

    def decode(self, ids: list[int]) -> str:
        """The text that `encode` reads back as these ids."""
        if not self.characters:
            return " ".join(self.words.get(token_id, str(token_id)) for token_id in ids)
        pieces = [self.words.get(token_id, f" {token_id} ") for token_id in ids]
        return " ".join("".join(pieces).split())


def check_id(token_id: int, vocab_size: int) -> int:
    """Return `token_id` if it names a row of a table with V rows; else raise `InputError`."""
    if not 0 <= token_id < vocab_size:
        raise InputError(
            "id_out_of_range", f"id {token_id} is outside 0…{vocab_size - 1}",
            id=token_id, last_id=vocab_size - 1,
        )
    return token_id

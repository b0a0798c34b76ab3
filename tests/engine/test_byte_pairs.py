"""Byte pairs: by hand, and against the `tokenizers` library's splitting, learning and applying."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from engine import gpt2_tokens
from engine.byte_pairs import BYTES, Step, encode, learn, merges, places, spellings, split

MOST = 60
TEXTS = [
    "low low lower lowest\nnew new newer newest\n今天好，今天天气真好。天真，真气人，天气好。",
    "It's the cat's mat, they'll say; we've 12 mats & 3.5 more!!  \n\n  I'd DON'T 'tis",
    "naïve café résumé Ünïcödé Straße ĳ ǅ ª º",
    "½ ² ٣ 一二三 Ⅷ 12:30\t\ttabs\r\nand\x0blines\x85here\u2028there\u3000全角",
    "😀😀👨‍👩‍👧 e\u0301e\u0301 שלום مرحبا हिन्दी ไทย",
    "   ", " a", "a ", "\n", "a\n\nb", "''s 's'll", "aaaa aaaa aaa",
]


def characters(text: str) -> str:
    """A text in the characters that GPT-2's files write for bytes."""
    return "".join(gpt2_tokens.BYTE_CHARACTERS[byte] for byte in text.encode())


def texts(seed: int) -> str:
    """A text of random signs of every kind that the splitting tells apart."""
    generator = random.Random(seed)
    signs = "aabbcé天气12٣½ ,.!'’s tl\n\t\u00a0\u3000😀\u0301_-"
    return "".join(generator.choices(signs, k=120))


def theirs(text: str, most: int) -> tuple[Tokenizer, list[tuple[str, str]]]:
    """The library's tokenizer learned on a text, bytes being their own ids, and its merges."""
    alphabet = list(gpt2_tokens.BYTE_CHARACTERS)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=len(BYTES) + most, min_frequency=2, special_tokens=alphabet, show_progress=False,
    ))
    pairs = [(left, right) for left, right in json.loads(trained.to_str())["model"]["merges"]]
    applied = Tokenizer(models.BPE(vocab=trained.get_vocab(), merges=pairs))
    applied.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return applied, pairs


def test_a_character_is_one_to_four_bytes() -> None:
    assert encode("今", {}) == ((0xE4, 0xBB, 0x8A),)
    assert encode("aé今😀", {}) == ((0x61, 0xC3, 0xA9, 0xE4, 0xBB, 0x8A), (0xF0, 0x9F, 0x98, 0x80))


@pytest.mark.parametrize("text", [*TEXTS, *map(texts, range(40))])
def test_chunks_are_those_of_the_library(text: str) -> None:
    """The published pattern, in the library's regular expressions."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert [characters(chunk) for chunk in split(text)] == [chunk for chunk, _ in splitter.pre_tokenize_str(text)]
    assert "".join(split(text)) == text


def test_learning_by_hand() -> None:
    """aaabdaaabac, the usual example: aa becomes Z, then ab (lower ids than Za) Y, then ZY X; XdXac is left."""
    start, *steps = learn("aaabdaaabac", MOST)
    a, b, c, d = b"abcd"
    z, y, x = 256, 257, 258
    assert (start.pair, start.token, start.chunks) == (None, None, (tuple(b"aaabdaaabac"),))
    assert start.counts[:2] == (((a, a), 4), ((a, b), 2))
    assert [(step.pair, step.token) for step in steps] == [((a, a), z), ((a, b), y), ((z, y), x)]
    assert [step.chunks for step in steps] == [
        ((z, a, b, d, z, a, b, a, c),), ((z, y, d, z, y, a, c),), ((x, d, x, a, c),),
    ]
    assert steps[0].counts == (
        ((a, b), 2), ((z, a), 2), ((a, c), 1), ((b, a), 1), ((b, d), 1), ((d, z), 1),
    )
    assert [step.next_pair for step in (start, *steps)] == [(a, a), (a, b), (z, y), None]
    assert spellings(merges(steps))[x] == b"aaab"


def test_the_steps_are_those_that_were_counted() -> None:
    """Each step merges the most frequent pair of the step before it, the lower ids first."""
    steps = list(learn(TEXTS[0], MOST))
    assert len(steps) == 26
    for before, step in pairwise(steps):
        found = [pair for chunk in before.chunks for pair in pairwise(chunk)]
        assert dict(before.counts) == {pair: found.count(pair) for pair in found}
        assert step.pair == min(set(found), key=lambda pair: (-found.count(pair), pair))
        assert step.pair == before.next_pair
    assert max((count for _, count in steps[-1].counts), default=0) == 1


@pytest.mark.parametrize(("text", "most", "count"), [
    ("", 5, 0), ("ab", 5, 0), ("abab", 0, 0), ("abab", 1, 1), ("ab ab", 5, 1),
])
def test_learning_ends(text: str, most: int, count: int) -> None:
    """Where no pair stands twice, or after as many merges as were asked for; never across chunks."""
    assert len(list(learn(text, most))) == count + 1


@pytest.mark.parametrize("text", [*TEXTS[:5], *(texts(seed) for seed in range(100, 130))])
def test_the_library_learns_and_applies_the_same(text: str) -> None:
    steps = list(learn(text, MOST))
    ours = merges(steps)
    spelled = spellings(ours)
    library, pairs = theirs(text, MOST)
    written = {token: "".join(gpt2_tokens.BYTE_CHARACTERS[byte] for byte in part) for token, part in spelled.items()}
    assert [(written[left], written[right]) for left, right in ours] == pairs
    for other in (text, *TEXTS, texts(7)):
        encoded = [token for chunk in encode(other, ours) for token in chunk]
        assert encoded == library.encode(other).ids
        assert b"".join(spelled[token] for token in encoded) == other.encode()


@pytest.mark.parametrize("text", TEXTS)
def test_applying_gives_what_learning_left(text: str) -> None:
    steps = list(learn(text, MOST))
    for count in range(len(steps)):
        assert encode(text, merges(steps[: count + 1])) == steps[count].chunks


@pytest.mark.parametrize(("ids", "found"), [
    ((), ()), ((1,), ()), ((1, 1), (0,)), ((1, 1, 1), (0,)), ((1, 1, 1, 1), (0, 2)), ((2, 1, 1, 2, 1, 1), (1, 4)),
])
def test_places_do_not_overlap(ids: tuple[int, ...], found: tuple[int, ...]) -> None:
    assert places(ids, (1, 1)) == found


def test_a_step_without_pairs_has_no_next() -> None:
    assert Step(None, None, ((1,),), ()).next_pair is None


# ---- GPT-2's own tokens: ids that the library gives with the published encoder.json and vocab.bpe

@pytest.mark.parametrize(("text", "ids"), [
    ("今天天气真", [20015, 232, 25465, 25465, 36365, 242, 40367, 253]),
    ("好", [25001, 121]), ("棒", [162, 96, 240]), ("差", [32432, 106]),
    ("Cats sit on", [34, 1381, 1650, 319]), ("Cats sit on mats", [34, 1381, 1650, 319, 46054]),
    ("red fox and red fox", [445, 21831, 290, 2266, 21831]),
    ("volcano chairs then they", [10396, 35490, 18791, 788, 484]),
    ("foxes hide under bushes .", [12792, 274, 7808, 739, 37413, 764]), ("tom has a kite", [39532, 468, 257, 479, 578]),
])
def test_gpt2_s_own_tokens(text: str, ids: list[int]) -> None:
    encoded = [token for chunk in gpt2_tokens.encode_words(text) for token in chunk]
    assert encoded == ids
    assert b"".join(gpt2_tokens.words_spellings()[token] for token in encoded) == text.encode()


def test_gpt2_s_bytes() -> None:
    """As published: ! is 0, a space is Ġ and 220, e4 is ä and 160, 8a is Ĭ and 232."""
    assert sorted(gpt2_tokens.BYTE_CHARACTERS) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(gpt2_tokens.BYTE_IDS) == list(BYTES)
    for byte, token, character in ((0x21, 0, "!"), (0x20, 220, "Ġ"), (0xE4, 160, "ä"), (0x8A, 232, "Ĭ")):
        assert (gpt2_tokens.BYTE_IDS[byte], gpt2_tokens.BYTE_CHARACTERS[byte]) == (token, character)

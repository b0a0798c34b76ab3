"""Texts drawn as characters, bytes and tokens: nothing is lost, and nothing is read as markup."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.staves import LINES, Piece, chip, colour, segments, spanned, spelled, stave
from ui.text import visible

JIN, TIAN = "今".encode(), "天".encode()


def cut(text: str, *lengths: int) -> list[tuple[int, bytes]]:
    """The bytes of a text in tokens of these lengths, with their places as ids."""
    data, parts, place = text.encode(), [], 0
    for length in lengths:
        parts.append(data[place:place + length])
        place += length
    assert place == len(data)
    return list(enumerate(parts))


def test_a_segment_ends_where_a_character_and_a_token_end() -> None:
    """今 in two tokens, 天 in one, then a token that takes the last byte of 气 with all of a."""
    first, second, third = segments("今天气a", cut("今天气a", 2, 1, 3, 2, 2))
    assert [each.characters for each in (first, second, third)] == [
        (("今", 3),), (("天", 3),), (("气", 3), ("a", 1)),
    ]
    assert [[piece.text for piece in each.pieces] for each in (first, second, third)] == [
        ["e4 bb", "8a"], ["天"], ["e6 b0", "94 61"],
    ]
    assert [[piece.columns for piece in each.pieces] for each in (first, second, third)] == [[2, 1], [3], [2, 2]]
    assert [piece.plain for piece in first.pieces] == [False, True]
    assert third.spelling == "气a".encode()


@pytest.mark.parametrize(("text", "shown"), [
    ("你好", ["e4", "bd", "a0", "e5", "a5", "bd"]), ("😀", ["f0", "9f", "98", "80"]),
])
def test_d04_bytes_stand_below_their_whole_character(text: str, shown: list[str]) -> None:
    """Tokens of one byte each: six and four, none of them a replacement mark."""
    parts = segments(text, cut(text, *[1] * len(text.encode())))
    assert "".join(letter for part in parts for letter, _ in part.characters) == text
    assert [piece.text for part in parts for piece in part.pieces] == shown


@given(text=st.text(max_size=30), data=st.data())
def test_no_character_byte_or_token_is_lost(text: str, data: st.DataObject) -> None:
    size = len(text.encode())
    ends = sorted(data.draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=10))) if size > 1 else []
    bounds = [0, *ends, size]
    tokens = cut(text, *(end - begin for begin, end in pairwise(bounds))) if size else []
    parts = segments(text, tokens)
    assert "".join(letter for part in parts for letter, _ in part.characters) == text
    assert b"".join(part.spelling for part in parts) == text.encode()
    assert [piece.id for part in parts for piece in part.pieces] == [token for token, _ in tokens]
    for part in parts:
        widths = {sum(width for _, width in part.characters), len(part.spelling), sum(p.columns for p in part.pieces)}
        assert len(widths) == 1


def test_tokens_that_share_a_character_stand_together() -> None:
    """Spaces that no token stands for stand alone; an empty token stands where it is."""
    parts = spanned("Hi 😀 x", [(1, "hi", 0, 2), (2, "<0xF0>", 3, 4), (3, "<0x9F>", 3, 4), (4, "x", 5, 6)])
    assert [("".join(text for text, _ in part.characters), [piece.id for piece in part.pieces]) for part in parts] == [
        ("Hi", [1]), (" ", []), ("😀", [2, 3]), (" ", []), ("x", [4]),
    ]
    assert parts[2].characters == (("😀", 2),)
    assert spanned("", []) == []
    assert [part.characters for part in spanned("ab", [])] == [(("ab", 1),)]
    last = spanned("ab ", [(1, "ab", 0, 2)])
    assert [len(part.pieces) for part in last] == [1, 0]


@pytest.mark.parametrize(("spelling", "shown"), [
    (b"low", "low"), (b" low", "␣low"), (b"\n", "↵"), (b"\t", "⇥"), (JIN, "今"), (JIN[:2], "e4 bb"), (JIN[2:], "8a"),
    (JIN + TIAN[:1], "e4 bb 8a e5"), (b"\xff", "ff"), (b"\x00", "U+0000"), ("\u200d".encode(), "U+200D"),
    ("\u0301".encode(), "◌\u0301"), ("\u202e".encode(), "U+202E"), ("\u3000".encode(), "U+3000"), (b"", ""),
])
def test_what_bytes_say(spelling: bytes, shown: str) -> None:
    """Never the sign for a broken character."""
    assert spelled(spelling) == shown


@pytest.mark.parametrize("text", ["<b>a</b>", "$x$ *y* `z`", "a&amp;b", '"\'', "<script>alert(1)</script>"])
def test_text_is_not_markup(text: str) -> None:
    drawn = stave([segments(text, cut(text, *[1] * len(text)))], LINES, LINES, text)
    assert not re.findall(r"<(?!/?(?:div|span|table|tr|td)\b)", drawn)
    cells = re.findall(r'<td class="stave-character">(.*?)</td>', drawn)
    assert html.unescape("".join(cells)) == visible(text)


def test_lines_and_columns() -> None:
    drawn = stave([segments("今", cut("今", 2, 1))], LINES, ["a", "b", "c", "d"], "label")
    assert '<td class="stave-character" colspan="3">今</td>' in drawn
    assert drawn.count('class="stave-byte"') == 3
    assert 'colspan="2">e4 bb</td>' in drawn
    assert 'role="img" aria-label="今: e4 bb = 0, 8a = 1"' in drawn
    assert "<span>a</span><span>b</span><span>c</span><span>d</span>" in drawn


def test_without_names_a_character_is_written_once() -> None:
    """Where its token says the same; not where the token is bytes."""
    whole = stave([segments("天", cut("天", 3))], ("characters", "tokens"), (), "label")
    assert "stave-character" not in whole
    broken = stave([segments("天", cut("天", 2, 1))], ("characters", "tokens"), (), "label")
    assert broken.count("stave-character") == 1
    assert "stave-end" in stave([segments("\n", cut("\n", 1))], ("tokens",), (), "label")


def test_colours() -> None:
    """The same id the same colour, neighbouring ids and round ones another; single bytes none."""
    hues = [colour(Piece(token, "x")) for token in range(256, 276)]
    assert all(hue not in hues[place - 2:place] for place, hue in enumerate(hues) if place > 1)
    assert len(set(hues)) == 12
    assert len({colour(Piece(token, "x")) for token in (1024, 2048, 3072, 4096)}) == 4
    assert colour(Piece(97, "a", plain=True)) == "piece"
    assert colour(Piece(97, "a", plain=True, mark="next")) == "piece piece-next"
    assert chip(Piece(300, "<")) == f'<span class="{colour(Piece(300, "<"))}">&lt;</span>'
    assert chip(Piece(300, "x" * 17)).endswith(f' title="{"x" * 17}">{"x" * 15}…</span>')

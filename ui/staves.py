"""A text drawn on lines one above the other: its characters, their bytes, the tokens, and the tokens' ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine import Model
from ui import naming
from ui.markup import Markup, join, tag
from ui.text import visible

HUES = 12
# steps of this share of the circle keep the colours of neighbouring ids apart, and of round ones too
GOLDEN_SHARE = 0.6180339887
LONGEST_CHIP = 16
LINES = ("characters", "bytes", "tokens", "ids")
NO_MARKS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class Piece:
    """A token as it is drawn: `text` is what it says, `columns` how wide it is.

    A plain one has no colour of its own; `mark` is what sets it off: new, or next.
    """

    id: int
    text: str
    columns: int = 1
    plain: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Segment:
    """The shortest part of a text that begins and ends with a character and with a token.

    `characters` holds each with its columns. Where tokens are bytes, there is a column for each of `spelling`.
    """

    characters: tuple[tuple[str, int], ...]
    spelling: bytes
    pieces: tuple[Piece, ...]


def spelled(spelling: bytes) -> str:
    """What bytes say: characters where they are whole ones, else the bytes in hexadecimal."""
    try:
        return visible(spelling.decode())
    except UnicodeDecodeError:
        return spelling.hex(" ")


def segments(text: str, tokens: Sequence[tuple[int, bytes]], marks: Mapping[int, str] = NO_MARKS) -> list[Segment]:
    """Cut a text where characters and tokens end together; the bytes of the tokens are those of the text.

    Tokens of a single byte are plain; `marks` holds the marks of tokens by their place.
    """
    found: list[Segment] = []
    characters: list[tuple[str, int]] = []
    pieces: list[Piece] = []
    spelling = b""
    letters, ahead = iter(text), 0
    for place, (token, part) in enumerate(tokens):
        pieces.append(Piece(token, spelled(part), len(part), len(part) == 1, marks.get(place, "")))
        spelling += part
        ahead += len(part)
        while ahead > 0:
            letter = next(letters)
            width = len(letter.encode())
            characters.append((letter, width))
            ahead -= width
        if ahead == 0:
            found.append(Segment(tuple(characters), spelling, tuple(pieces)))
            characters, pieces, spelling = [], [], b""
    return found


def spanned(text: str, tokens: Sequence[tuple[int, str, int, int]]) -> list[Segment]:
    """Cut a text where it can be cut by tokens that say which characters [start, end) they stand for.

    Tokens that share characters stand together under them; characters that no token stands for stand alone.
    """
    found: list[Segment] = []
    place = 0
    group: list[Piece] = []
    begin = end = 0
    for token, written, start, stop in (*tokens, (0, "", len(text), len(text))):
        if group and start >= end:
            found.append(_group(text[begin:end], group))
            place, group = end, []
        if not group:
            if start > place:
                found.append(Segment(((text[place:start], 1),), b"", ()))
            begin, end = start, stop
        group.append(Piece(token, visible(written)))
        end = max(end, stop)
    return found


def _group(text: str, pieces: list[Piece]) -> Segment:
    return Segment(((text, len(pieces)),), text.encode(), tuple(pieces))


def stave(parts: Sequence[Sequence[Segment]], lines: Sequence[str], names: Sequence[str], label: str) -> Markup:
    """The segments of each chunk of a text on the chosen lines; `names` are the words for the lines.

    Without names, the characters are left out where the token below says the same.
    """
    legend = tag("div", *(tag("span", name) for name in names), css="stave-names", aria_hidden="true")
    drawn = [[_drawn(each, lines, not names) for each in chunk] for chunk in parts if chunk]
    chunks = (tag("span", *chunk, css="stave-chunk") for chunk in drawn)
    ends = (tag("span", css="stave-end") if _ends_line(chunk) else Markup() for chunk in parts if chunk)
    text = tag("div", *(join(*both) for both in zip(chunks, ends, strict=True)), css="stave-text")
    return tag("div", *([legend] if names else []), text, css="stave", role="group", aria_label=label)


def _ends_line(chunk: Sequence[Segment]) -> bool:
    return any("\n" in text for segment in chunk for text, _ in segment.characters)


def _drawn(segment: Segment, lines: Sequence[str], lean: bool) -> Markup:
    """One segment: a small table whose columns are bytes, or tokens."""
    said = "".join(visible(text) for text, _ in segment.characters)
    if lean and [piece.text for piece in segment.pieces] == [said]:
        lines = [line for line in lines if line != "characters"]
    rows = {
        "characters": [_cell(visible(text), columns, "stave-character") for text, columns in segment.characters],
        "bytes": [_cell(f"{byte:02x}", 1, "stave-byte") for byte in segment.spelling],
        "tokens": [_cell(piece.text, piece.columns, colour(piece)) for piece in segment.pieces],
        "ids": [_cell(str(piece.id), piece.columns, "stave-id") for piece in segment.pieces],
    }
    drawn = [tag("tr", *(rows[line] or [_cell("—", 1, "stave-none")])) for line in lines]
    return tag("table", *drawn, role="img", aria_label=f"{said}: {_spoken(segment)}", css="stave-segment")


def _cell(content: str, columns: int, css: str) -> Markup:
    return tag("td", content, css=css, colspan=columns if columns > 1 else "")


def colour(piece: Piece) -> str:
    """The classes of a token: the same id has the same colour everywhere."""
    hue = "" if piece.plain else f" piece-{int(piece.id * GOLDEN_SHARE % 1 * HUES)}"
    return f"piece{hue}{piece.mark and f' piece-{piece.mark}'}"


def chip(piece: Piece) -> Markup:
    """A token on its own, in a sentence or a table; of a long one the beginning."""
    if len(piece.text) <= LONGEST_CHIP:
        return tag("span", piece.text, css=colour(piece))
    return tag("span", f"{piece.text[:LONGEST_CHIP - 1]}…", css=colour(piece), title=piece.text)


def token_chip(model: Model, token: int, mark: str = "") -> Markup:
    """A token of the model by its id."""
    return chip(Piece(token, naming.token_label(model, token), mark=mark))


def _spoken(segment: Segment) -> str:
    """What a screen reader says after the characters: each token with its id."""
    return ", ".join(f"{piece.text} = {piece.id}" for piece in segment.pieces)

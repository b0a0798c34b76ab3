"""What lesson 14's cards show, as HTML: made once for all readers who look at the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from engine import byte_pairs, gpt2_tokens, presets
from engine.byte_pairs import Chunks, Step
from formats.tokenizer_files import FileError, ReaderTokenizer, Token
from ui.controls import CONTROLS
from ui.markup import Markup, card_head, fill, join, tag
from ui.staves import LINES, NO_MARKS, Piece, Segment, chip, segments, spanned, spelled, stave
from ui.text import say

MOST_MERGES = int(CONTROLS["merges"].high)
LISTED_PAIRS = 8


@lru_cache(maxsize=16)
def learning(corpus: str) -> tuple[Step, ...]:
    """Every step of learning on a text, of each the pairs that are listed."""
    return tuple(
        Step(step.pair, step.token, step.chunks, step.counts[:LISTED_PAIRS])
        for step in byte_pairs.learn(corpus, MOST_MERGES)
    )


def learned(corpus: str, merges: int) -> tuple[Step, ...]:
    """The steps up to that merge, or to the last one that there is."""
    return learning(corpus)[: merges + 1]


def head(language: str, name: str) -> Markup:
    """The title of a card, and its sentence of guidance."""
    return card_head(say(language, f"tokens_{name}"), say(language, f"tokens_{name}_note"))


# ---- the sentence of the model

@lru_cache(maxsize=64)
def sentence(language: str, preset: str, ids: tuple[int, ...]) -> Markup:
    """A preset's sentence in bytes and in its own ids, and in those of GPT-2 where all of it is words."""
    tokenizer = presets.load(preset).tokenizer
    assert tokenizer is not None
    words = [tokenizer.words.get(token) for token in ids]
    parts = [
        segments(word, [(token, word.encode())]) if word else [_unspelled(token, tokenizer.label(token))]
        for token, word in zip(ids, words, strict=True)
    ]
    content = [_stave(language, parts, "tokens_sentence"), tag("p", say(language, f"tokens_of_{preset}"))]
    if all(words) and preset != gpt2_tokens.LEFT_OUT:
        text = tokenizer.decode(list(ids))
        encoded = gpt2_tokens.encode_words(text)
        told = fill(say(language, "tokens_gpt2"), count=str(sum(map(len, encoded))))
        own_parts = _parts(text, encoded, gpt2_tokens.words_spellings())
        content += [tag("p", told), _stave(language, own_parts, "tokens_gpt2_label")]
    return _content(*content)


def _unspelled(token: int, label: str) -> Segment:
    """An id that the vocabulary has no word for."""
    return Segment(((label, 1),), b"", (Piece(token, label),))


# ---- learning

@lru_cache(maxsize=64)
def learn(language: str, corpus: str, merges: int) -> Markup:
    """The text after so many merges, the pairs to choose from, and what has been learned."""
    steps = learned(corpus, merges)
    step = steps[-1]
    spellings = byte_pairs.spellings(byte_pairs.merges(steps))
    parts = _parts(corpus, step.chunks, spellings, lambda ids: _marks(ids, step))
    text = stave(parts, ("characters", "tokens"), (), say(language, "tokens_learn"))
    last = len(learning(corpus)) - 1
    return _content(
        tag("p", _status(language, step, len(steps) - 1, last, spellings), css="card-status", role="status"),
        tag("div", text, _pairs(language, step, spellings), css="card-columns"),
        _merges(language, steps, spellings),
    )


def _marks(ids: Sequence[int], step: Step) -> dict[int, str]:
    """The tokens of a chunk that the last merge made, and those that the next one takes."""
    new = {place: "new" for place, token in enumerate(ids) if token == step.token}
    starts = byte_pairs.places(ids, step.next_pair) if step.next_pair else ()
    return new | {place: mark for start in starts for place, mark in ((start, "next"), (start + 1, "next-end"))}


def _status(language: str, step: Step, here: int, last: int, spellings: Mapping[int, bytes]) -> Markup:
    """Where learning stands, and what it does next."""
    stands = fill(say(language, "merge_status"), here=str(here), last=str(last), size=str(len(spellings)))
    if step.next_pair is None:
        is_bare = here == 0 and not step.counts
        return join(stands, say(language, "merges_nothing" if is_bare else "merge_ends"))
    if here == MOST_MERGES:
        return join(stands, say(language, "merge_stops", most=MOST_MERGES))
    left, right = (chip(_piece(token, spellings)) for token in step.next_pair)
    return join(stands, fill(
        say(language, "merge_chosen"), left=left, right=right, count=str(step.counts[0][1]), token=str(len(spellings)),
    ))


def _pairs(language: str, step: Step, spellings: Mapping[int, bytes]) -> Markup:
    """The most frequent pairs with their counts; the first one is merged next."""
    heads = tag("tr", *(tag("th", say(language, f"pairs_{name}"), scope="col") for name in ("pair", "ids", "count")))
    highest = step.counts[0][1] if step.counts else 1
    lines = [
        tag(
            "tr", tag("td", chip(_piece(left, spellings)), " + ", chip(_piece(right, spellings))),
            tag("td", f"{left} + {right}", css="pairs-ids"),
            tag("td", tag("i", style=f"--share: {100 * count // highest}"), str(count), css="pairs-count"),
            css="pairs-next" if (left, right) == step.next_pair else "",
        )
        for (left, right), count in step.counts
    ]
    return tag("table", tag("caption", say(language, "pairs_caption")), heads, *lines, css="pairs")


def _merges(language: str, steps: Sequence[Step], spellings: Mapping[int, bytes]) -> Markup:
    """What has been learned, in order."""
    lines = [
        tag(
            "li", tag("small", str(step.token)), chip(_piece(step.pair[0], spellings)), "+",
            chip(_piece(step.pair[1], spellings)), "→", chip(_piece(step.token, spellings)),
        )
        for step in steps if step.pair is not None and step.token is not None
    ]
    if not lines:
        return tag("p", say(language, "merges_none"), css="card-note")
    return join(tag("p", say(language, "merges_learned"), css="card-note"), tag("ol", *lines, css="merges"))


# ---- applying

@lru_cache(maxsize=64)
def applied(language: str, corpus: str, merges: int, sample: str) -> Markup:
    """A text in bytes, and in the tokens that those merges make of it."""
    known = byte_pairs.merges(learned(corpus, merges))
    encoded = byte_pairs.encode(sample, known)
    counts = {"characters": len(sample), "bytes": len(sample.encode()), "tokens": sum(map(len, encoded))}
    told = fill(say(language, "apply_counts"), **{name: str(count) for name, count in counts.items()})
    parts = _parts(sample, encoded, byte_pairs.spellings(known))
    return _content(_stave(language, parts, "tokens_apply"), tag("p", told, css="card-status", role="status"))


# ---- the reader's own tokenizer

def own(language: str, tokenizer: ReaderTokenizer | None, refused: FileError | None, sample: str) -> Markup:
    """What a reader's tokenizer makes of the text, below why the last files were refused."""
    content = [] if refused is None else [refusal(language, refused)]
    if tokenizer is not None:
        told = fill(say(language, "own_loaded"), name=tag("code", tokenizer.name), model=tokenizer.model,
                    size=str(tokenizer.vocab_size))
        content.append(tag("p", told, css="card-status"))
        try:
            tokens = tokenizer.encode(sample)
        except FileError as error:
            content.append(refusal(language, error))
        else:
            counted = fill(say(language, "own_counts"), tokens=str(len(tokens)))
            content += [_own_stave(language, sample, tokens), tag("p", counted, css="card-status")]
    return _content(*content)


def refusal(language: str, error: FileError) -> Markup:
    """What is wrong with a file."""
    return tag("p", say(language, f"file_{error.code}", **error.details), css="card-refusal", role="alert")


def _own_stave(language: str, text: str, tokens: Sequence[Token]) -> Markup:
    """The reader's tokens below their bytes, or, where the vocabulary is not one of bytes, below their characters."""
    spellings = [(token.id, token.spelling) for token in tokens if token.spelling is not None]
    if len(spellings) == len(tokens) and b"".join(part for _, part in spellings) == text.encode():
        return _stave(language, [segments(text, spellings)], "tokens_own")
    spans = [(token.id, token.text, token.start, token.end) for token in tokens]
    return _stave(language, [spanned(text, spans)], "tokens_own", ("characters", "tokens", "ids"))


# ---- shared by the cards

def _content(*content: Markup) -> Markup:
    return tag("div", *content, css="card-content")


def _stave(language: str, parts: Sequence[Sequence[Segment]], label: str, lines: Sequence[str] = LINES) -> Markup:
    return stave(parts, lines, [say(language, f"stave_{line}") for line in lines], say(language, label))


def _parts(text: str, encoded: Chunks, spellings: Mapping[int, bytes],
           marks: Callable[[Sequence[int]], Mapping[int, str]] = lambda ids: NO_MARKS) -> list[list[Segment]]:
    """The segments of each chunk."""
    return [
        segments(chunk, [(token, spellings[token]) for token in ids], marks(ids))
        for chunk, ids in zip(byte_pairs.split(text), encoded, strict=True)
    ]


def _piece(token: int, spellings: Mapping[int, bytes]) -> Piece:
    return Piece(token, spelled(spellings[token]), plain=len(spellings[token]) == 1)

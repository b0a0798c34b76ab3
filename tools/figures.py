"""What the trained presets reach, measured by the engine on pages that are no part of their training.

Attention is that of a head at the places where its work is done, to the place that the work needs:
its mean over all pages. The heads with a large mean are those that do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from engine import Edit, Model, Trace, run
from tools.grammars import ANIMALS, VERBS, CopyMachine, LittleWorld, Memory, Sentence, repeated

SEED = 20250101
PAGES = 400
SENTENCES_EACH = 20
DECIMALS = 4
# row of the batch, the place that looks, the place that is looked at
Look = tuple[int, int, int]
Pages = Sequence[Sequence[str]]
# layers and numbers of heads
Heads = list[tuple[int, int]]
# a head that looks where it should with this mean does so for all to see
SHARP = 0.8


def copy_machine(model: Model) -> tuple[dict[str, float], dict[str, Heads]]:
    """The figures and the heads of the copy machine: what it copies, and without its previous-token head."""
    chance, grammar = Random(SEED), CopyMachine()
    blocks = [grammar.block(chance) for _ in range(PAGES)]
    pages = rounds(model, blocks)
    trace = read(model, pages)
    figures, heads = looking_back(trace, blocks)
    layer, head = heads["previous_token"][0]
    removed = Edit(f"layers.{layer}.attention.head_output", (slice(None), head), 0.0)
    without = copying(read(model, pages, removed), pages, blocks)
    return {"copying": copying(trace, pages, blocks), "copying_without_previous_token": without, **figures}, heads


def little_world(model: Model) -> tuple[dict[str, float], dict[str, Heads]]:
    """The figures and the heads of the little world: facts, agreement, recall, chants."""
    chance, grammar = Random(SEED), LittleWorld()
    cats = read(model, ["cats sit on".split()])["probabilities"].data[0, -1, word_ids(model)["mats"]]
    sentences = [
        grammar.sentence(chance, animal, deed, is_alone=bool(number % 2))
        for animal, (_, deeds) in ANIMALS.items() for deed in deeds for number in range(SENTENCES_EACH)
    ]
    told, subject, subject_heads = about_animals(model, sentences)
    memories = [grammar.memory(chance) for _ in range(PAGES)]
    recalled, seen, recall_heads = about_owners(model, memories)
    blocks = [grammar.verse(chance) for _ in range(PAGES)]
    pages = rounds(model, blocks)
    trace = read(model, pages)
    back, heads = looking_back(trace, blocks)
    return (
        {"cats_sit_on_mats": float(cats), **told, "recall": recalled, "copying": copying(trace, pages, blocks),
         "subject": subject, "recalled": seen, **back},
        {"subject": subject_heads, "recalled": recall_heads, **heads},
    )


def about_animals(model: Model, sentences: Sequence[Sentence]) -> tuple[dict[str, float], float, Heads]:
    """Share of right places and of verbs in the right number after a distractor; the look back at the subject."""
    ids = word_ids(model)
    trace = read(model, [sentence.words for sentence in sentences])
    leading = trace["logits"].data.argmax(-1)
    misled = [(row, sentence) for row, sentence in enumerate(sentences) if sentence.distracts]
    forms = {True: {ids[deed] for deed in VERBS}, False: {ids[singular] for singular, _ in VERBS.values()}}
    facts = [leading[row, each.noun - 1] == ids[each.words[each.noun]] for row, each in enumerate(sentences)]
    agreement = [leading[row, each.verb - 1] in forms[each.is_plural] for row, each in misled]
    looks = [(row, each.verb - 1, each.subject) for row, each in misled]
    return {"facts": share(facts), "agreement": share(agreement)}, *strongest(trace, looks)


def about_owners(model: Model, memories: Sequence[Memory]) -> tuple[float, float, Heads]:
    """Share of right answers, and the look back at where the answer stood."""
    ids, length = word_ids(model), longest(model)
    trace = read(model, [memory.words for memory in memories])
    leading = trace["logits"].data.argmax(-1)
    looks = [
        (row, place, goal) for row, memory in enumerate(memories)
        for place, goal in memory.questions if place < length
    ]
    answers = [leading[row, place] == ids[memories[row].words[goal]] for row, place, goal in looks]
    return share(answers), *strongest(trace, looks)


def looking_back(trace: Trace, blocks: Pages) -> tuple[dict[str, float], dict[str, Heads]]:
    """To the word before; in the second round to the word after the one that stood here in the first."""
    length = trace.ids.shape[1]
    before = [(row, place, place - 1) for row in range(len(blocks)) for place in range(1, length)]
    again = [
        (row, place, place - len(block) + 1) for row, block in enumerate(blocks)
        for place in range(len(block), min(2 * len(block), length))
    ]
    previous, previous_heads = strongest(trace, before)
    induction, induction_heads = strongest(trace, again)
    return (
        {"previous_token": previous, "induction": induction},
        {"previous_token": previous_heads, "induction": induction_heads},
    )


def copying(trace: Trace, pages: Pages, blocks: Pages) -> float:
    """Share of right predictions of what is there for a second time at least."""
    ids, leading = word_ids(trace.model), trace["logits"].data.argmax(-1)
    return share(
        leading[row, place] == ids[pages[row][place + 1]]
        for row, block in enumerate(blocks) for place in range(len(block), len(pages[row]) - 1)
    )


def strongest(trace: Trace, looks: Sequence[Look]) -> tuple[float, Heads]:
    """The largest mean attention of any head at those looks; the heads that are sharp there, the strongest first."""
    rows, places, goals = np.array(looks).T
    means = {
        (layer, head): float(trace[f"layers.{layer}.attention.weights"].data[rows, head, places, goals].mean())
        for layer in range(trace.model.config.layers) for head in range(trace.model.config.heads)
    }
    first, *others = sorted(means, key=means.__getitem__, reverse=True)
    return means[first], [first, *(head for head in others if means[head] >= SHARP)]


def read(model: Model, pages: Pages, *edits: Edit) -> Trace:
    """One run over all pages, cut at the model's length; what fills a short one stands behind it and is not seen."""
    ids, most = word_ids(model), min(longest(model), max(map(len, pages)))
    rows: list[list[Any]] = [[ids[word] for word in page[:most]] for page in pages]
    return run(model, [row + [0] * (most - len(row)) for row in rows], edits=edits)


def rounds(model: Model, blocks: Pages) -> list[list[str]]:
    """A page of each block."""
    return [repeated(block, longest(model)) for block in blocks]


def word_ids(model: Model) -> dict[str, int]:
    assert model.tokenizer is not None
    return {word: token for token, word in model.tokenizer.words.items()}


def longest(model: Model) -> int:
    assert model.config.max_positions is not None
    return model.config.max_positions


def share(answers: Iterable[bool]) -> float:
    """How many of the answers are right."""
    return float(np.mean(list(answers)))

"""The committed weights of the trained presets reach their figures, on sentences that the tests draw themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from engine import Edit, InputError, Model, Trace, generation, presets, run, stored
from tools import figures
from tools.grammars import CopyMachine, LittleWorld

FOLDER = Path(__file__).parent.parent.parent / "assets" / "presets"
LONGEST = 32
MOST_BYTES = 300_000
# who does what where, written down again
FACTS = """
cat sit mat, cat hide bed, cat jump wall, dog sleep bed, dog go field, dog jump log, bird sit roof, bird sleep nest,
bird hide bush, frog sit log, frog hide rock, frog go pond, cow sleep barn, cow go field, cow jump rock, duck sit rock,
duck go pond, duck hide bush, bee sit flower, bee go field, bee hide roof, fox hide bush, fox sleep cave, fox jump wall,
horse sleep barn, horse go river, horse jump log, bear sleep cave, bear sit rock, bear go river
"""
PREPOSITIONS = {"sit": "on", "sleep": "in", "hide": "under", "go": "to", "jump": "over"}
ADJECTIVES = ("big", "small", "old", "young")
PEOPLE = ("tom", "mia", "leo", "eva", "ben", "amy")
THINGS = ("ball", "kite", "book", "drum", "hat", "boat", "key", "cup")
SOUNDS = ("la", "lo", "hey", "ho", "ding", "dong", "boom", "pop")
Look = tuple[int, int, int]


def many(word: str) -> str:
    return f"{word}es" if word in ("fox", "bush", "go") else f"{word}s"


def pages(model: Model, texts: Iterable[str]) -> Trace:
    """One run over all texts; a short one is filled up behind, where it cannot be seen."""
    assert model.tokenizer is not None
    rows = [model.tokenizer.encode(text)[:LONGEST] for text in texts]
    width = max(map(len, rows))
    return run(model, [[*row, *[0] * (width - len(row))] for row in rows])


def winners(trace: Trace) -> list[list[str]]:
    """The word with the largest logit at every place."""
    assert trace.model.tokenizer is not None
    return [list(map(trace.model.tokenizer.label, row)) for row in trace["logits"].data.argmax(-1).tolist()]


def attention(trace: Trace, head: tuple[int, int], looks: Sequence[Look]) -> float:
    """Mean weight with which a head looks from a place to another: row, place, place looked at."""
    rows, places, goals = np.array(looks).T
    return float(trace[f"layers.{head[0]}.attention.weights"].data[rows, head[1], places, goals].mean())


def rounds(block: Sequence[str], length: int = LONGEST) -> list[str]:
    return [block[place % len(block)] for place in range(length)]


def copied(trace: Trace, blocks: Sequence[Sequence[str]]) -> float:
    """Share of places, from the second round on, at which the next word is foretold."""
    right = [
        found[place] == rounds(block)[place + 1]
        for found, block in zip(winners(trace), blocks, strict=True) for place in range(len(block), LONGEST - 1)
    ]
    return float(np.mean(right))


def before(count: int, length: int = LONGEST) -> list[Look]:
    return [(row, place, place - 1) for row in range(count) for place in range(1, length)]


def after_the_same(blocks: Sequence[Sequence[str]]) -> list[Look]:
    """In the second round: the place after the one where the same word stood in the first."""
    return [
        (row, place, place - len(block) + 1) for row, block in enumerate(blocks)
        for place in range(len(block), min(2 * len(block), LONGEST))
    ]


# ---- copy machine

@cache
def letters() -> tuple[list[list[str]], Trace]:
    """300 blocks of 4 to 14 letters, none of them twice, each read again and again."""
    generator = np.random.default_rng(7)
    alphabet = [chr(ord("a") + number) for number in range(26)]
    blocks = [generator.permutation(alphabet)[:generator.integers(4, 15)].tolist() for _ in range(300)]
    return blocks, pages(presets.load("copy_machine"), ("".join(rounds(block)) for block in blocks))


def test_the_copy_machine_copies_all_from_the_second_round_on() -> None:
    blocks, trace = letters()
    assert {len(block) for block in blocks} == set(range(4, 15))
    assert copied(trace, blocks) == pytest.approx(1.0, abs=0.0005)


def test_a_head_of_its_first_layer_looks_at_the_letter_before() -> None:
    (head,), (blocks, trace) = heads("copy_machine", "previous_token"), letters()
    assert head[0] == 0
    assert attention(trace, head, before(len(blocks))) >= 0.8


def test_both_heads_of_its_second_layer_look_behind_the_earlier_occurrence() -> None:
    found, (blocks, trace) = heads("copy_machine", "induction"), letters()
    assert {layer for layer, _ in found} == {1}
    assert len(found) == 2
    for head in found:
        assert attention(trace, head, after_the_same(blocks)) >= 0.8


def test_without_the_head_that_looks_at_the_letter_before_it_hardly_copies() -> None:
    (layer, head), blocks = heads("copy_machine", "previous_token")[0], letters()[0]
    trace = letters()[1]
    removed = Edit(f"layers.{layer}.attention.head_output", (slice(None), head), 0.0)
    assert copied(run(trace.model, trace.ids, edits=[removed], base=trace), blocks) < 0.25
    other = Edit(f"layers.{layer}.attention.head_output", (slice(None), 1 - head), 0.0)
    assert copied(run(trace.model, trace.ids, edits=[other], base=trace), blocks) > 0.75


# ---- little world

def drawn(generator: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(generator.integers(len(words)))]


def noun(generator: np.random.Generator, animal: str, plural: bool, article: str) -> str:
    adjective = f"{drawn(generator, ADJECTIVES)} " if generator.random() < 0.3 else ""
    return f"{article}{adjective}{many(animal) if plural else animal}"


@cache
def animals() -> tuple[list[dict[str, Any]], Trace]:
    """Every fact told forty times: singular and plural, with and without articles, an adjective or another animal."""
    generator, told = np.random.default_rng(8), []
    facts = [fact.split() for fact in FACTS.split(",")]
    kinds = sorted({animal for animal, _, _ in facts})
    for animal, deed, place in facts * 40:
        plural, bare = bool(generator.random() < 0.5), bool(generator.random() < 0.3)
        bare = bare and plural
        subject = noun(generator, animal, plural, "" if bare else "the ").split()
        other_plural, between = bool(generator.random() < 0.5), []
        if generator.random() < 0.6:
            other = drawn(generator, [kind for kind in kinds if kind != animal])
            article = "the " if not bare else "" if other_plural else "a "
            link = drawn(generator, ("with", "near"))
            between = f"{link} {noun(generator, other, other_plural, article)}".split()
        verb = deed if plural else many(deed)
        ending = [verb, PREPOSITIONS[deed], *([] if bare else ["the"]), many(place) if plural else place]
        told.append({
            "words": [*subject, *between, *ending], "subject": len(subject) - 1, "verb": len(subject) + len(between),
            "plural": plural, "distracts": bool(between) and other_plural != plural,
        })
    return told, pages(presets.load("little_world"), (" ".join(each["words"]) for each in told))


@cache
def owners() -> tuple[list[tuple[Look, str]], Trace]:
    """Two or three people who have something, and what one of them likes: each question, and its answer."""
    generator, texts, questions = np.random.default_rng(9), [], []
    for row in range(400):
        count = int(generator.integers(2, 4))
        people, things = (generator.permutation(words)[:count].tolist() for words in (PEOPLE, THINGS))
        words = " ".join(f"{who} has a {what} ." for who, what in zip(people, things, strict=True)).split()
        asked = int(generator.integers(count))
        texts.append(" ".join([*words, people[asked], "likes", "the"]))
        questions.append(((row, len(words) + 2, words.index(things[asked])), things[asked]))
    return questions, pages(presets.load("little_world"), texts)


@cache
def chants() -> tuple[list[list[str]], Trace]:
    """300 verses of three to seven words, half of them sounds alone."""
    generator = np.random.default_rng(10)
    names = [*dict.fromkeys(fact.split()[0] for fact in FACTS.split(","))]
    others = [*SOUNDS, *THINGS, *PEOPLE, *names, *map(many, names)]
    blocks = [
        generator.permutation(others if number % 2 else SOUNDS)[:generator.integers(3, 8)].tolist()
        for number in range(300)
    ]
    return blocks, pages(presets.load("little_world"), (" ".join(rounds(block)) for block in blocks))


def test_cats_sit_on_mats() -> None:
    trace = run(presets.load("little_world"), "cats sit on")
    assert winners(trace)[0][-1] == "mats"
    assert trace["probabilities"].data[0, -1].max() >= 0.9


def test_the_little_world_knows_its_facts() -> None:
    told, trace = animals()
    right = [
        found[len(each["words"]) - 2] == each["words"][-1] for found, each in zip(winners(trace), told, strict=True)
    ]
    assert np.mean(right) >= 0.99


def test_its_verbs_agree_with_the_subject_and_not_with_the_nearer_noun() -> None:
    told, trace = animals()
    forms = {True: set(PREPOSITIONS), False: set(map(many, PREPOSITIONS))}
    right = [
        found[each["verb"] - 1] in forms[each["plural"]]
        for found, each in zip(winners(trace), told, strict=True) if each["distracts"]
    ]
    assert len(right) > 300
    assert np.mean(right) >= 0.99


def test_a_head_goes_back_to_the_subject_past_the_nearer_noun() -> None:
    (head, *_), (told, trace) = heads("little_world", "subject"), animals()
    looks = [(row, each["verb"] - 1, each["subject"]) for row, each in enumerate(told) if each["distracts"]]
    assert attention(trace, head, looks) >= 0.9


def test_it_recalls_who_has_what() -> None:
    questions, trace = owners()
    found = winners(trace)
    right = [found[row][place] == answer for (row, place, _), answer in questions]
    assert np.mean(right) >= 0.99


def test_heads_recall_where_the_answer_stood() -> None:
    questions, trace = owners()
    assert attention(trace, heads("little_world", "recalled")[0], [look for look, _ in questions]) >= 0.8


def test_it_copies_chants() -> None:
    blocks, trace = chants()
    assert copied(trace, blocks) >= 0.99
    assert attention(trace, heads("little_world", "previous_token")[0], before(len(blocks))) >= 0.8
    assert attention(trace, heads("little_world", "induction")[0], after_the_same(blocks)) >= 0.8


# ---- both

def heads(preset: str, work: str) -> tuple[tuple[int, int], ...]:
    """The heads that the card names."""
    card = presets.card(preset)
    assert card is not None
    return card.heads[work]


REFERENCE = Path(__file__).parent.parent / "reference" / "trained_models.npz"
EVERY_TRAINED = pytest.mark.parametrize("name", presets.TRAINED)


@EVERY_TRAINED
def test_a_file_is_small_and_says_what_it_is(name: str) -> None:
    file = FOLDER / f"{name}.safetensors"
    assert file.stat().st_size < MOST_BYTES
    arrays, notes = stored.read(file)
    model, card = presets.load(name), presets.card(name)
    assert card is not None
    assert notes.keys() == {"config", "vocabulary", "characters", "card"}
    assert list(arrays) == list(model.config.parameter_shapes())
    assert json.loads(notes["vocabulary"]) == list(model.tokenizer.words.values())
    assert card.steps > 1000
    assert 0 < card.loss < np.log(model.config.vocab_size)
    assert all(0 <= figure <= 1 for figure in card.figures.values())


@EVERY_TRAINED
def test_the_models_are_of_the_kind_that_the_lessons_run(name: str) -> None:
    model = presets.load(name)
    config = model.config
    assert (config.norm, config.positions, config.activation) == ("rmsnorm", "rope", "relu")
    assert {config.bias, config.tied_head, config.qk_norm} == {False}
    assert (config.hidden_size, config.layers, config.max_positions) == (32, 2, LONGEST)
    assert model.dtype == np.float64
    for parameter, array in model.parameters.items():
        np.testing.assert_array_equal(array, np.round(array, 4), err_msg=parameter)


@EVERY_TRAINED
def test_pytorch_computes_the_same(name: str) -> None:
    """`reference/make_trained_reference.py`, over all positions that the models have."""
    with np.load(REFERENCE, allow_pickle=False) as arrays:
        trace = run(presets.load(name), arrays[f"{name}/ids"])
        given = [key for key in arrays if key.startswith(f"{name}/tensors/")]
        assert len(given) == 4
        for key in given:
            np.testing.assert_allclose(trace[key.rpartition("/")[2]].data, arrays[key], rtol=1e-11, atol=1e-11)


def test_presets_without_training_have_no_card() -> None:
    assert [name for name in presets.NAMES if presets.card(name)] == ["copy_machine", "little_world"]


@EVERY_TRAINED
def test_a_text_beyond_the_trained_length_is_refused_and_the_loop_slides(name: str) -> None:
    model = presets.load(name)
    with pytest.raises(InputError, match="33 tokens") as refused:
        run(model, [[0] * (LONGEST + 1)])
    assert refused.value.code == "too_long"
    *_, last = generation.generate(model, [0] * (LONGEST - 1), 3)
    assert (last.positions, last.rebuilt) == (range(1, LONGEST + 1), True)


@EVERY_TRAINED
def test_the_card_has_what_the_script_measures(name: str) -> None:
    model, card = presets.load(name), presets.card(name)
    assert card is not None
    reached, found = getattr(figures, name)(model)
    assert card.figures == pytest.approx(reached, abs=0.002)
    assert {work: list(places) for work, places in card.heads.items()} == found


@pytest.mark.parametrize(("name", "grammar"), [("copy_machine", CopyMachine()), ("little_world", LittleWorld())])
def test_pages_of_the_grammar_are_made_of_the_model_s_words(name: str, grammar: CopyMachine | LittleWorld) -> None:
    tokenizer = presets.load(name).tokenizer
    assert tokenizer is not None
    assert tuple(tokenizer.words.values()) == grammar.words
    chance = Random(3)
    pages = [grammar.page(chance, LONGEST + 1) for _ in range(200)]
    assert {len(page) for page in pages} == {LONGEST + 1}
    assert {word for page in pages for word in page} == set(grammar.words)

"""What the app says of the trained presets: where their weights come from, sentences to try, words in Chinese."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import presets, run
from tests.ui.support import alive, framed, is_chinese, opened, reader, state_of
from ui import glosses, settings
from ui.text import LANGUAGES, say

EVERY_TRAINED = pytest.mark.parametrize("preset", presets.TRAINED)
EXAMPLES = [(preset, what) for preset in presets.TRAINED for what in presets.EXAMPLES[preset]]
# from the sentences themselves, by whoever knows the grammar
ANSWERS = {
    "short_block": {"e"}, "long_block": {"j"}, "fact": {"mats"}, "recall": {"ball"}, "chant": {"hey"},
    "agreement": {"sits", "hides", "jumps"},
}


@pytest.mark.parametrize(("preset", "what"), EXAMPLES)
def test_each_example_shows_what_was_learned(preset: str, what: str) -> None:
    model, sentence = presets.load(preset), presets.EXAMPLES[preset][what]
    assert model.tokenizer is not None
    likely = run(model, sentence)["probabilities"].data[0, -1]
    answers = {token for token, word in model.tokenizer.words.items() if word in ANSWERS[what]}
    assert len(answers) == len(ANSWERS[what])
    assert likely[sorted(answers)].sum() > 0.9
    assert model.tokenizer.label(int(likely.argmax())) in ANSWERS[what]


def test_of_the_little_world_the_words_that_matter_are_shown() -> None:
    """The targets, what is asked for, and the eight that lead behind the sentence; of the embedding what is read."""
    state = reader("loss", preset="little_world", rows=(7,))
    logits = run(presets.load("little_world"), "cats sit on")["logits"].data[0, -1]
    shown = {table["tensor"]: table for table in framed("loss", state).data["grids"].values()}["logits"]
    sit, on, mats = 20, 30, 36
    assert shown["column_index"] == sorted({sit, on, mats, 7, *np.argsort(-logits)[:8].tolist()})
    assert shown["more_rows"] == {"max": 95}
    read = {table["tensor"]: table for table in framed("embedding", state).data["grids"].values()}["embedding.weight"]
    assert read["row_index"] == [1, 7, sit, on]


@pytest.mark.parametrize("language", LANGUAGES)
@EVERY_TRAINED
def test_the_note_says_training_and_names_the_heads(preset: str, language: str) -> None:
    note, card = settings.note(reader(preset=preset, language=language)), presets.card(preset)
    assert card is not None
    assert str(card.steps) in note
    for work in ("previous_token", "induction" if preset == "copy_machine" else "subject"):
        for layer, head in card.heads[work]:
            assert say(language, "head_place", layer=layer + 1, head=head) in note
    assert is_chinese(note) == (language == "zh")


@pytest.mark.parametrize(("language", "words"), [("en", "set by hand"), ("zh", "手")])
def test_cats_says_that_its_weights_were_set_by_hand(language: str, words: str) -> None:
    assert words in settings.note(reader(language=language))


@pytest.mark.parametrize(("preset", "what"), EXAMPLES)
def test_an_example_is_a_button_that_changes_the_sentence(preset: str, what: str) -> None:
    app = opened(lang="en", preset=preset, text="a")
    buttons = {button.key: button for button in app.sidebar.button if button.key.startswith("learned_")}
    assert len(buttons) == len(presets.EXAMPLES[preset])
    buttons[f"learned_{what}_en_{preset}"].click().run()
    assert not app.exception
    assert state_of(app).choices.text == presets.EXAMPLES[preset][what]


def test_a_link_without_the_sentence_s_field_has_no_examples() -> None:
    app = opened(lang="en", preset="little_world", hide="sentence")
    assert not [button for button in app.sidebar.button if button.key.startswith("learned_")]


def test_every_word_of_the_little_world_has_its_meaning_in_chinese() -> None:
    tokenizer = presets.load("little_world").tokenizer
    assert tokenizer is not None
    meanings = glosses.read("little_world", "zh")
    assert set(meanings) == set(tokenizer.words.values())
    assert all(is_chinese(meaning) or word == "." for word, meaning in meanings.items())
    # singular and plural, and the forms of a verb, are told apart
    repeated = [meaning for meaning in meanings.values() if [*meanings.values()].count(meaning) > 1]
    assert repeated == []


def test_every_word_of_the_second_article_has_its_meaning_in_english() -> None:
    tokenizer = presets.load("today").tokenizer
    assert tokenizer is not None
    meanings = glosses.read("today", "en")
    assert set(meanings) == set(tokenizer.words.values())
    assert not any(map(is_chinese, meanings.values()))
    state = reader("scores", preset="today", language="en")
    chips = alive("scores", state)["strip"]["tokens"]
    assert [chip["gloss"] for chip in chips] == [meanings[word] for word in "今天天气真"]
    assert not glosses.read("today", "zh")


def test_heads_are_set_apart_and_measured_on_something() -> None:
    """A place of a head has a comma of its own in English; and no head looks there always."""
    assert "layer 2, head 0; layer 2, head 1" in settings.note(reader("scores", preset="copy_machine"))
    assert "in chants, to the word before: layer 1, head 3" in settings.note(reader("scores", preset="little_world"))
    assert "在念谣里，看前一个词的" in settings.note(reader("scores", preset="little_world", language="zh"))


@pytest.mark.parametrize(("preset", "language", "glossed"), [
    ("little_world", "zh", True), ("little_world", "en", False), ("cats", "zh", False), ("copy_machine", "zh", False),
])
def test_tokens_have_their_meaning_in_a_second_line(preset: str, language: str, glossed: bool) -> None:
    state = reader("scores", preset=preset, language=language)
    live, frame = alive("scores", state), framed("scores", state).data
    shown: list[dict[str, Any]] = [*live["strip"]["tokens"], *live["strip"]["candidates"], *frame["tokens"]]
    for grid in frame["grids"].values():
        for axis, heads in ((grid["row_axis"], grid["rows"]), (grid["column_axis"], grid["columns"])):
            shown += heads if axis in ("query", "key", "position", "vocabulary") else []
    assert len(shown) > 20
    for each in shown:
        assert ("gloss" in each) == glossed, each
        assert each.get("gloss") == glosses.read(preset, language).get(each["text"])

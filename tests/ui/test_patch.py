"""Lesson 36: the other sentence, the grid of effects while it fills and when it is full, and carrying a place over."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import Carried, Edit, InputError, presets, run
from engine.patching import KINDS
from tests.ui.support import (
    EVERY_PRESET,
    alive,
    edit,
    framed,
    items,
    on_page,
    opened,
    reader,
    send,
    state_of,
    strictly,
    words_of,
)
from ui import naming, pairs, patch_cards, patch_charts, patching
from ui.address import address, open_address
from ui.patch_charts import MIDDLE, SCALES, Shades, luminance
from ui.state import State
from ui.text import LANGUAGES, explain_error, number

LESSON = pairs.LESSON
# mats − chairs in *Cats sit on* and in *Cats on on*
HERE, THERE = 0.9984, 1.0725


def on_patch(**choices: Any) -> State:
    return reader(LESSON, **choices)


def difference(state: State, ids: tuple[int, ...], *edits: Edit) -> float:
    """By a run without the lesson's program and without a base."""
    last = run(state.model, [list(ids)], edits=edits)["logits"].row(0, len(ids) - 1)
    return float(last[state.question.token] - last[state.question.rival])


# ---- what is set

@EVERY_PRESET
def test_the_proposed_sentence_fits(preset: str) -> None:
    state = on_patch(preset=preset)
    assert pairs.text(state) == presets.OTHERS[preset][0]
    now = patching.setting(state)
    assert len(now.differing) == 1
    here, there = now.ends
    assert (here, there) == (difference(state, now.ids), difference(state, now.other))
    assert abs(there - here) > 0.05


@pytest.mark.parametrize("text", ["on", "Cats on on", "Cats sit on Cats sit on", " ".join(["sit"] * 32)])
def test_a_sentence_is_proposed_for_any_other(text: str) -> None:
    state = on_patch(text=text)
    other = pairs.other(state)
    assert len(other) == len(state.ids)
    assert other != state.ids


@pytest.mark.parametrize(("typed", "code"), [
    ("Cats dance on", "unknown_word"), ("Cats sit", "other_length"), ("Cats sit on on", "other_length"),
    (" ", "empty"), ("Cats sit 256", "id_out_of_range"), (" ".join(["on"] * 33), "too_long"),
])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_sentence_stays_and_is_explained(typed: str, code: str, language: str) -> None:
    state = on_patch(language=language)
    edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
    state.set_control("other", typed)
    with pytest.raises(InputError) as caught:
        patching.setting(state)
    assert caught.value.code == code
    assert explain_error(language, caught.value)
    assert pairs.text(state) == typed
    assert len(state.edits) == 1
    again = open_address(dict(parse_qsl(address(state)[1:])), None)
    assert again.message is None
    assert again.control("other") == typed


@pytest.mark.parametrize(("preset", "text", "proposed"), [
    ("little_world", "the cat with the dogs", "the cats with the dogs"),
    ("little_world", "cats sit on", "frogs sit on"), ("cats", "on on sit", "Cats on sit"),
])
def test_the_proposal_differs_in_one_token(preset: str, text: str, proposed: str) -> None:
    assert pairs.text(on_patch(preset=preset, text=text)) == proposed


def test_the_same_sentence_twice_has_no_share() -> None:
    state = on_patch()
    state.set_control("other", state.choices.text)
    now = patching.setting(state)
    points = patch_charts.grid(state, now, dict(patching.effects(now)), (0, 0))["data"][1]
    assert set(points["text"]) == {"–"}


def test_other_lengths_are_explained_by_their_positions() -> None:
    state = on_patch()
    state.set_control("other", "Cats sit on on")
    with pytest.raises(InputError) as caught:
        pairs.other(state)
    assert "has 4 tokens and yours 3" in explain_error("en", caught.value)
    assert "same position" in explain_error("en", caught.value)


@pytest.mark.parametrize(("name", "value"), [
    ("carried", "everything"), ("carried", ""), ("carried_layer", "-2"), ("carried_position", "x"),
    ("other", "x" * 601),
])
def test_a_link_with_a_control_that_cannot_be_is_broken(name: str, value: str) -> None:
    assert open_address({name: value}, None).message is not None


def test_the_place_stays_inside() -> None:
    state = on_patch()
    now = patching.setting(state)
    assert patching.chosen(state, now) == (1, 1), "after layer 1, where the sentences differ"
    state.set_control("carried_layer", 99)
    state.set_control("carried_position", 77)
    assert patching.chosen(state, now) == (2, 2), "behind the last layer only the last position is read"
    state.set_control("carried_layer", 0)
    state.set_control("carried", "mlp")
    assert patching.chosen(state, patching.setting(state)) == (1, 1)


def test_the_rival_is_what_the_other_sentence_leads_to() -> None:
    """Unless the reader says otherwise, or both lead to the same token: then as on other pages."""
    state = on_patch(preset="copy_machine")
    assert [naming.token_label(state.model, token) for token in (state.question.token, state.question.rival)] == [
        "e", "i"
    ]
    assert reader("wrote", preset="copy_machine").question.rival != state.question.rival
    assert on_patch().question == reader("wrote").question
    state.set_control("other", "planetplan")
    assert state.question == reader("wrote", preset="copy_machine").question
    state.set_control("other", "short")
    assert state.question == reader("wrote", preset="copy_machine").question
    state.set_control("rival", 3)
    assert state.question.rival == 3


# ---- effects

@EVERY_PRESET
@pytest.mark.parametrize("kind", KINDS)
def test_every_effect_is_that_of_a_run_with_numbers_put_in(preset: str, kind: str) -> None:
    state = on_patch(preset=preset)
    state.set_control("carried", kind)
    now = patching.setting(state)
    there = run(state.model, [list(now.other)])
    effects = dict(patching.effects(now))
    layers = range(0 if kind == "stream" else 1, state.model.config.layers + 1)
    assert list(effects) == [(layer, position) for layer in layers for position in range(len(state.ids))]
    for place, effect in effects.items():
        carried = now.edit(place)
        cells = np.ndenumerate(there[carried.name].data[carried.index])
        numbers = [Edit(carried.name, (*carried.index, *index), float(value)) for index, value in cells]
        assert effect == difference(state, state.ids, *numbers)


def test_the_middle_row_of_the_example() -> None:
    """By the article's own numbers nothing is known; what the separate pass of `tests/engine` gave for cats is."""
    now = patching.setting(on_patch())
    shares = {place: now.share(effect) for place, effect in patching.effects(now)}
    rows = [[shares[layer, position] for position in range(3)] for layer in range(3)]
    np.testing.assert_allclose(np.array(rows, dtype=float), [[0, 1, 0], [0, 0.194, 1.049], [0, 0, 1]], atol=5e-4)


def test_effects_are_computed_once_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Edit] = []
    known = patching.patching.patched

    def count(here: Any, edit: Edit) -> float:
        asked.append(edit)
        return known(here, edit)
    monkeypatch.setattr(patching.patching, "patched", count)
    one, other = (patching.setting(on_patch(text="sit Cats on", head=head)) for head in (0, 1))
    # a page that is left ends the iteration; what was computed is kept
    begun = patching.effects(one)
    first = [next(begun) for _ in range(4)]
    assert len(asked) == 4
    assert list(patching.effects(other))[:4] == first, "the head does not matter for the stream"
    assert len(asked) == len(one.places) == 9
    list(patching.effects(one))
    assert len(asked) == 9


def test_edits_do_not_move_the_grid_but_the_board() -> None:
    state = on_patch()
    before = list(patching.effects(patching.setting(state)))
    edit(state, "layers.0.attention.Wo", (0, 1), 0.7)
    assert list(patching.effects(patching.setting(state))) == before
    assert state.trace["patch.difference"].number((0,)) != state.baseline["patch.difference"].number((0,))


# ---- the picture

@EVERY_PRESET
@pytest.mark.parametrize("kind", KINDS)
def test_the_picture(preset: str, kind: str) -> None:
    state = on_patch(preset=preset)
    state.set_control("carried", kind)
    now = patching.setting(state)
    effects = dict(patching.effects(now))
    drawn = patch_charts.grid(state, now, effects, (1, 2))
    strictly(drawn)
    heat, points = drawn["data"]
    # rows are coordinates from the bottom, and repeated tokens have columns of their own
    assert heat["y"] == list(now.layers)
    assert heat["x"] == list(range(len(state.ids)))
    assert [heat["z"][now.layers.index(layer)][position] for layer, position in effects] == [
        now.share(effect) for effect in effects.values()
    ]
    assert list(zip(points["y"], points["x"], strict=True)) == list(effects)
    ticks = drawn["layout"]["xaxis"]["ticktext"]
    assert len(set(ticks)) == len(state.ids)
    assert [position for position, tick in enumerate(ticks) if "←" in tick] == list(now.differing)
    assert "-" not in "".join(points["text"]), "a minus is a minus sign"
    assert not [text for text in points["text"] if re.match(r"(<b>)?−0\.0+\b", text)]
    frame = drawn["layout"]["shapes"][0]
    assert (frame["x0"] + frame["x1"], frame["y0"] + frame["y1"]) == (4, 2)


def test_cells_say_both_numbers() -> None:
    state = on_patch()
    now = patching.setting(state)
    effects = dict(patching.effects(now))
    points = patch_charts.grid(state, now, effects, (0, 0))["data"][1]
    at = {place: (points["text"][number], points["customdata"][number]) for number, place in enumerate(now.places)}
    assert at[0, 1][0] == f"<b>1.0000</b><br>{THERE}"
    assert at[2, 0][0] == f"<b>0.0000</b><br>{HERE}"
    assert at[0, 1][1] == f"before Layer 1 · 1: sit<br>difference {THERE}<br>share 1.0000"


def test_a_cell_is_wide_enough_for_its_second_number() -> None:
    state = on_patch(preset="little_world")
    now = patching.setting(state)
    effects = dict(patching.effects(now))
    assert max(map(abs, effects.values())) > 10
    points = patch_charts.grid(state, now, effects, (0, 0))["data"][1]
    seconds = [text.partition("<br>")[2] for text in points["text"]]
    assert max(map(len, seconds)) <= len("−9.9999")
    for second, told, effect in zip(seconds, points["customdata"], effects.values(), strict=True):
        assert float(second.replace("−", "-")) == pytest.approx(effect, abs=0.005)
        assert number(effect) in told, "all digits where it is pointed at"


def test_without_a_way_there_is_no_share() -> None:
    """The other sentence is the same but for a word that the vocabulary has no numbers for, as mats and chairs."""
    state = on_patch(text="mats sit on")
    state.set_control("other", "chairs sit on")
    now = patching.setting(state)
    assert now.differing == (0,)
    assert {now.share(effect) for _, effect in patching.effects(now)} == {None}
    heat, points = patch_charts.grid(state, now, dict(patching.effects(now)), (0, 0))["data"]
    assert {size for row in heat["z"] for size in row} == {0.0}
    assert "share" not in "".join(points["customdata"])


@pytest.mark.parametrize("length", [4, 6, 13])
def test_long_sentences_have_room_for_less(length: int) -> None:
    state = on_patch(text=" ".join(["Cats", "sit", "on", *["on"] * (length - 3)]))
    now = patching.setting(state)
    texts = patch_charts.grid(state, now, dict(patching.effects(now)), (0, 0))["data"][1]["text"]
    assert {len(text.lstrip("−")) for text in texts} == ({0} if length > patch_charts.MANY else {4})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_can_be_read_on_every_shade(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shades, "scale", SCALES[theme])
    shades = Shades(2.0)
    for step in range(-20, 21):
        shade = luminance(shades.of(step / 10))
        ink = 1.0 if shades.ink(step / 10) == "#ffffff" else 0.0
        lighter, darker = max(shade, ink), min(shade, ink)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, step
    assert luminance((0, 0, 0)) == 0 < MIDDLE < luminance((255, 255, 255)) == pytest.approx(1)


# ---- carrying a place over

@EVERY_PRESET
@pytest.mark.parametrize("kind", KINDS)
def test_a_place_becomes_an_edit(preset: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = on_patch(preset=preset)
    monkeypatch.setattr(patch_cards, "current", lambda: state)
    state.set_control("carried", kind)
    now = patching.setting(state)
    place = (1, len(state.ids) - 1)
    patch_cards._carry(now, place, True)
    assert state.message is None
    (carried,) = state.edits
    assert carried.value == Carried(now.other)
    assert state.trace["patch.difference"].number((0,)) == patching.effect(now, place)
    there = now.there[carried.name].data[carried.index]
    assert np.array_equal(state.trace[carried.name].data[carried.index], there)
    data = alive(LESSON, state)
    assert sum(map(len, data["edited"].values())) >= there.size
    again = open_address(dict(parse_qsl(address(state)[1:])), None)
    assert (again.message, again.edits) == (None, state.edits)
    patch_cards._carry(now, place, False)
    assert state.edits == ()
    send(state, "undo")
    send(state, "undo")
    assert state.edits == ()
    send(state, "redo")
    assert state.edits == (carried,)


def test_both_places_together_make_the_other_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 1: after layer 1 positions 1 and 2 differ and no other, so both of them are all there is."""
    state = on_patch()
    monkeypatch.setattr(patch_cards, "current", lambda: state)
    now = patching.setting(state)
    for position in (1, 2):
        patch_cards._carry(now, (1, position), True)
    assert np.array_equal(state.trace["logits"].data[0, -1], now.there["logits"].data[0, -1])


def test_the_board_has_the_stream_and_what_is_added() -> None:
    frame = framed(LESSON, on_patch(preset="scratch"))
    tensors = [grid["tensor"] for grid in frame.data["grids"].values()]
    assert tensors[:3] == ["embedding.output", "layers.0.output", "layers.1.output"]
    assert tensors[3:6] == [f"layers.0.{name}" for name in
                            ("attention.head_output", "attention.output", "mlp.output")]
    assert frame.uses_layer
    assert frame.uses_head
    assert items(frame)


# ---- the page

def page(**query: str) -> AppTest:
    return again(opened(**{"lang": "en", **query}))


def again(app: AppTest) -> AppTest:
    return on_page(app, "patch")


def test_the_page_shows_both_runs() -> None:
    said = words_of(page())
    assert f"difference mats − chairs {HERE} {THERE} {HERE}" in re.sub(" +", " ", said)
    assert "Share of the way: 0.19" in said


def test_a_sentence_is_typed_and_taken() -> None:
    app = page()
    app.text_input(key="other_en_cats").set_value("Cats Cats on").run()
    again(app)
    assert state_of(app).control("other") == "Cats Cats on"
    assert f"{HERE} 1.0516" in re.sub(" +", " ", words_of(app))
    app.text_input(key="other_en_cats").set_value("Cats dance on").run()
    again(app)
    assert "dance" in words_of(app)
    assert "Both runs side by side" not in words_of(app)
    assert app.text_input(key="other_en_cats").value == "Cats dance on"
    app.text_input(key="other_en_cats").set_value("").run()
    again(app)
    assert app.text_input(key="other_en_cats").value == "Cats on on"


def test_sentences_are_swapped() -> None:
    app = page()
    app.button(key="patch_swap_en").click().run()
    again(app)
    state = state_of(app)
    assert (state.choices.text, pairs.text(state)) == ("Cats on on", "Cats sit on")
    assert f"{THERE} {HERE} {THERE}" in re.sub(" +", " ", words_of(app))


def test_what_came_from_the_other_sentence_is_taken_back_by_a_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would carry this sentence's own vectors; what came from a third one stays, and undo brings all back."""
    state = on_patch()
    monkeypatch.setattr(patch_cards, "current", lambda: state)
    third = Edit("layers.0.output", (0, 0), Carried((78, 78, 78)))
    state.commit((third,))
    for position in (1, 2):
        patch_cards._carry(patching.setting(state), (1, position), True)
    assert len(state.edits) == 3
    patch_cards._swap()
    assert (state.edits, state.choices.text) == ((third,), "Cats on on")
    send(state, "undo")
    assert len(state.edits) == 3


@pytest.mark.parametrize(("preset", "kind", "place"), [
    ("today", "stream", (0, 1)), ("today", "attention", (1, 4)), ("cats", "stream", (1, 1)), ("cats", "mlp", (1, 1)),
])
def test_the_first_place_is_one_where_there_is_something_to_see(
    preset: str, kind: str, place: tuple[int, int],
) -> None:
    state = on_patch(preset=preset)
    state.set_control("carried", kind)
    now = patching.setting(state)
    assert patching.chosen(state, now) == place
    assert now.share(patching.effect(now, place)) not in (None, 0.0)


@pytest.mark.parametrize(("language", "said"), [
    ("en", "carried over from Cats on on , not from the other sentence as it is now: 2."), ("zh", "2 处"),
])
def test_what_is_carried_from_another_sentence_is_said_and_taken_back(language: str, said: str) -> None:
    app = page(lang=language)
    state = state_of(app)
    own = Edit("layers.0.mlp.W_up", (0, 0), 0.9)
    carried = [Edit("layers.0.output", (0, position), Carried((12, 78, 78))) for position in (1, 2)]
    state.commit((own, *carried))
    app.run()
    again(app)
    assert f"patch_elsewhere_{language}" not in {button.key for button in app.button}
    app.text_input(key=f"other_{language}_cats").set_value("chairs sit on").run()
    again(app)
    assert said in re.sub(r"\s+", " ", words_of(app))
    app.button(key=f"patch_elsewhere_{language}").click().run()
    again(app)
    assert state.edits == (own,)
    assert f"patch_elsewhere_{language}" not in {button.key for button in app.button}
    send(state, "undo")
    assert state.edits == (own, *carried)


def test_what_is_carried_and_where_is_chosen() -> None:
    app = page()
    # AppTest knows segmented controls as button groups
    state = state_of(app)
    app.selectbox(key="carried_layer_en").select(2).run()
    again(app)
    assert (state.control("carried_layer"), state.choices.layer) == (2, 1), "the board goes along"
    app.selectbox(key="carried_position_en").select(2).run()
    again(app)
    assert "Share of the way: 1.0000" in words_of(app)
    app.button(key="patch_carry_en").click().run()
    again(app)
    assert state.edits == (Edit("layers.1.output", (0, 2), Carried((12, 78, 78))),)
    assert f"{HERE} {THERE} {THERE}" in re.sub(" +", " ", words_of(app))
    app.button(key="patch_carry_en").click().run()
    assert state.edits == ()


def test_progress_counts_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, str]] = []
    monkeypatch.setattr(patch_cards, "UNNOTICED_SECONDS", -1.0)
    monkeypatch.setattr("streamlit.delta_generator.DeltaGenerator.progress",
                        lambda self, value, text: told.append((value, text)))
    page(text="on Cats sit Cats", other="on Cats on Cats")
    assert told[-12:] == [(done / 12, f"{done} of 12 places computed") for done in range(1, 13)]


@pytest.mark.parametrize(("hidden", "gone", "kept"), [
    ("controls", ("patch_swap_en", "patch_carry_en"), "What each place does"), ("chart", (), "One place"),
])
def test_what_a_link_hides(hidden: str, gone: tuple[str, ...], kept: str) -> None:
    app = page(hide=hidden)
    assert not {button.key for button in app.button} & set(gone)
    assert kept in words_of(app)
    assert ("What each place does" in words_of(app)) == (hidden != "chart")


@pytest.mark.parametrize("language", LANGUAGES)
@EVERY_PRESET
def test_the_page_opens_for_every_preset(preset: str, language: str) -> None:
    assert words_of(page(preset=preset, lang=language))

"""The lessons of the *Cats sit on* walk on every preset, under every pair of switches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from engine import ModelConfig, presets, run
from tests.ui.support import (
    ARCHITECTURES,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    is_chinese,
    numbers_at,
    page,
    reader,
    send,
    strictly,
    taking_turns,
)
from ui import applicability, flow, navigation, text, wording
from ui.board import view
from ui.drawing import Drawing
from ui.explanation import explanation
from ui.state import State
from ui.switches import FIELDS, Value, settled

WALK = navigation.GROUPS["lessons_cats"]
DRAWS = 60
Switched = dict[str, Value]


@lru_cache(maxsize=1)
def pairwise() -> tuple[Switched, ...]:
    """Settings of all switches in which every two values of two switches meet; greedy, and the same each time."""
    draw, fields = random.Random(0), list(FIELDS)

    def met(setting: Switched) -> set[tuple[tuple[str, Value], ...]]:
        return set(combinations(((field, setting[field]) for field in fields), 2))
    wanted = {
        ((first, left), (second, right)) for first, second in combinations(fields, 2)
        for left in FIELDS[first] for right in FIELDS[second]
    }
    found = []
    while wanted:
        settings = [{field: draw.choice(FIELDS[field]) for field in fields} for _ in range(DRAWS)]
        best = max(settings, key=lambda setting: len(met(setting) & wanted))
        found.append(best)
        wanted -= met(best)
    return tuple(found)


EVERY_SETTING = pytest.mark.parametrize("number", range(len(pairwise())))


def switched(lesson: str, preset: str, setting: Switched, **choices: Any) -> State:
    """A reader of a preset under other choices of architecture."""
    own = presets.load(preset).config
    return reader(lesson, preset=preset, switches=settled(tuple(setting.items()), own), **choices)


def readers(number: int, names: Sequence[str] = ()) -> Iterator[tuple[str, State]]:
    """A reader of every lesson of the walk that applies, in the languages by turns."""
    for preset in names or taking_turns(number, every=4):
        language = text.LANGUAGES[number % len(text.LANGUAGES)]
        for lesson in WALK:
            state = switched(lesson, preset, pairwise()[number], language=language)
            if applicability.applies(lesson, state.model.config):
                yield lesson, state


@EVERY_SETTING
def test_every_lesson_has_a_board_of_real_numbers(number: int) -> None:
    for lesson, state in readers(number):
        frame = framed(lesson, state)
        strictly(frame.data)
        assert frame.data["layout"]
        for part in frame.data["layout"]:
            assert part["items"]
            words = (part["title"] or "") + (part["note"] or "")
            assert not {"{", "}"} & set(words)
            assert not part["note"] or is_chinese(part["note"]) == (state.choices.language == "zh")
        for grid in frame.data["grids"].values():
            # a tied head is drawn under the name of the leaf that it is
            assert state.baseline[grid["tensor"]].name == grid["tensor"]
            shown = numbers_at(state.baseline, addresses(grid)) if "vocabulary" not in grid["shape"] else None
            if shown is not None and state.choices.preset != "today":
                np.testing.assert_array_equal(decoded(grid["baseline"]), shown)
        chart = page(lesson).chart
        if chart is not None:
            strictly(chart(state))


@EVERY_SETTING
def test_an_edit_reaches_the_board_of_every_lesson(number: int) -> None:
    preset = presets.NAMES[number % len(presets.NAMES)]
    for lesson, state in readers(number, [preset]):
        name, index = "embedding.output", (0, len(state.ids) - 1, 1)
        edit(state, name, index, 0.75)
        send(state, "select", tensor=name, index=[*index], trail="start")
        data = alive(lesson, state)
        strictly(data)
        assert data["message"] is None
        assert data["explanation"]["value"] == 0.75
        assert data["strip"]["first_changed"] == name
        changed = {key for key, grid in framed(lesson, state).data["grids"].items() if grid["tensor"] == name}
        assert changed <= set(data["values"])


@EVERY_SETTING
def test_a_switched_run_with_the_lesson_s_program_equals_one_without(number: int) -> None:
    """What a lesson computes beside the model changes nothing in the model."""
    state = switched("lm_head", "cats", pairwise()[number])
    alone = run(state.model, [list(state.ids)])
    for name, tensor in alone.items():
        assert tensor.data.tobytes() == state.baseline[name].data.tobytes(), name


@EVERY_SETTING
def test_what_the_lessons_compute_beside_the_model_agrees_with_it(number: int) -> None:
    """At factor 1 the scaled stream's logits are the model's; contributions add up to the logit before the cap."""
    state = switched("lm_head", "scratch", pairwise()[number])
    trace, config = state.baseline, state.model.config
    path = "with_norm" if config.norm != "none" else "without_norm"
    np.testing.assert_allclose(trace[f"scaled.{path}.logits"].data[0], trace["logits"].data[0, -1], rtol=1e-12)
    summed = trace["contributions"].data.sum(axis=1)
    uncapped = trace["logits" if config.logit_soft_cap is None else "logits.uncapped"].data[0, -1]
    np.testing.assert_allclose(summed, uncapped, rtol=1e-12, atol=1e-13)


def config_of(**choices: Any) -> ModelConfig:
    return switched("overview", "cats", choices).model.config


@pytest.mark.parametrize("scope", ["model", "layer"])
@EVERY_SETTING
def test_pictures_lead_from_box_to_box(scope: str, number: int) -> None:
    for preset in taking_turns(number, every=4):
        state = switched("overview", preset, pairwise()[number])
        blocks = flow.blocks(scope, state.model.config, 0)
        names = [block.id for block in blocks]
        assert len({*names}) == len(names)
        drawing = Drawing(view(state))
        for place, block in enumerate(blocks):
            assert block.branch is None or block.branch in names[:place], block
            assert (block.branch is None) or state.model.config.residual
            assert block.lesson in navigation.LESSONS
            assert block.lesson is not None
            assert applicability.applies(block.lesson, state.model.config), block
            assert block.tensor is None or drawing.tensor_name(block.tensor) in state.baseline


def shown_in(lesson: str, **choices: Any) -> list[str]:
    """The tensors on a lesson's board, in order of their first appearance."""
    state = switched(lesson, "cats", choices)
    grids, keys = framed(lesson, state).data["grids"], []
    for part in framed(lesson, state).data["layout"]:
        keys += [item["grid"] for item in part["items"] if item["type"] == "grid"]
    return list(dict.fromkeys(grids[key]["tensor"] for key in keys))


def test_learned_positions_add_their_table_to_the_embedding() -> None:
    assert shown_in("embedding", positions="rope") == ["input_ids", "embedding.weight", "embedding.output"]
    assert shown_in("embedding", positions="learned")[3:] == [
        "position_embedding.weight", "position_embedding.output", "embedding.sum",
    ]


def test_biases_stand_beside_their_matrices() -> None:
    names = shown_in("qkv", bias=True)
    for letter in "qkv":
        place = names.index(f"layers.0.attention.W{letter}")
        assert names[place + 1:place + 3] == [f"layers.0.attention.b{letter}", f"layers.0.attention.{letter}"]
    assert not any(".b" in name for name in shown_in("qkv", bias=False))


@pytest.mark.parametrize(("choices", "first", "second"), [
    ({}, "embedding.output", "layers.0.residual1"),
    ({"norm_placement": "post"}, "layers.0.residual1", "layers.0.residual2"),
    ({"positions": "learned"}, "embedding.sum", "layers.0.residual1"),
])
def test_norms_read_what_the_model_feeds_them(choices: Switched, first: str, second: str) -> None:
    state = switched("rmsnorm", "cats", choices)
    drawing = Drawing(view(state))
    for template, name, norm in (("{norm1_input}", first, "norm1"), ("{norm2_input}", second, "norm2")):
        assert drawing.tensor_name(template) == name
        assert state.baseline[f"layers.0.{norm}.mean_square"].inputs[0].name == name
    assert shown_in("rmsnorm", **choices)[0] == first


@pytest.mark.parametrize("setting", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_what_modules_read_is_what_the_board_says(setting: Switched) -> None:
    """The layout's names against the inputs that the engine recorded."""
    for layer in (0, 1):
        state = switched("qkv", "cats", setting, layer=layer)
        drawing, trace = Drawing(view(state)), state.baseline
        for template, step in (("{attention_input}", "attention.q"), ("{mlp_input}", "mlp.up")):
            assert drawing.tensor_name(template) == trace[f"layers.{layer}.{step}"].inputs[0].name
        dot = trace[f"layers.{layer}.attention.dot"].inputs
        for letter, source in zip("qk", dot, strict=True):
            ready = f"layers.{{layer}}.attention.{letter}"
            name = drawing.tensor_name(f"{ready}_norm.output | {ready}_rotated | {ready}_heads")
            assert name == source.name


def test_after_a_norm_that_comes_last_the_stream_goes_on() -> None:
    names = shown_in("residual", norm_placement="post")
    assert names == [
        "embedding.output", "layers.0.attention.output", "layers.0.residual1", "layers.0.norm1.output",
        "layers.0.mlp.output", "layers.0.residual2", "layers.0.norm2.output", "layers.0.output",
    ]


@pytest.mark.parametrize("language", text.LANGUAGES)
@pytest.mark.parametrize("activation", FIELDS["activation"])
def test_signs_and_notes_speak_of_the_activation_that_the_model_has(activation: str, language: str) -> None:
    state = switched("mlp", "cats", {"activation": activation}, language=language)
    part = framed("mlp", state).data["layout"][0]
    name = text.say(language, f"flow_{activation}")
    assert name in part["title"]
    assert name in [item.get("text") for item in part["items"]]
    end = "no_activation" if activation == "none" else activation
    assert part["note"] == text.say(language, f"note_activation_{end}")


@pytest.mark.parametrize(("choices", "labels"), [
    ({}, ["Embedding", "Layer 1, + attention", "Layer 1, + MLP", "Layer 2, + attention", "Layer 2, + MLP"]),
    ({"positions": "learned", "residual": False},
     ["Embedding + position", "Layer 1, attention alone", "Layer 1, MLP alone", "Layer 2, attention alone",
      "Layer 2, MLP alone"]),
    ({"norm_placement": "post"},
     ["Embedding", *(f"Layer {layer}, {what}" for layer in (1, 2)
                     for what in ("+ attention", "norm 1", "+ MLP", "norm 2"))]),
])
def test_stages_have_a_row_for_each_new_value_of_the_stream(choices: Switched, labels: list[str]) -> None:
    state = switched("layers", "cats", choices)
    grid = framed("layers", state).data["grids"]["g0"]
    assert [row["text"] for row in grid["rows"]] == labels
    names = list(dict.fromkeys(name for name, _ in addresses(grid)))
    assert len(names) == len(labels)
    stream = "embedding.sum" if choices.get("positions") == "learned" else "embedding.output"
    assert (names[0], names[-1]) == (stream, "layers.1.output")


def test_a_tied_head_is_one_table_under_its_first_name() -> None:
    state = switched("lm_head", "cats", {"tied_head": True})
    frame = framed("lm_head", state)
    (table,) = (grid for grid in frame.data["grids"].values() if grid["tensor"] == "embedding.weight")
    assert table["title"] == "embedding.weight = lm_head.weight"
    # an edit under either name is marked on it
    for name in ("lm_head.weight", "embedding.weight"):
        edited = switched("lm_head", "cats", {"tied_head": True})
        edit(edited, name, (12, 0), 3.0)
        key = next(key for key, grid in frame.data["grids"].items() if grid is table)
        place = [row["text"] for row in table["rows"]].index("Cats") * 4
        assert alive("lm_head", edited)["edited"][key] == [place]
    rows = {row["text"] for grid in frame.data["grids"].values() if grid["row_axis"] == "vocabulary"
            for row in grid["rows"]}
    assert rows == {"#0", "Cats", "sit", "on", "mats", "chairs", "volcano", "#255"}


def test_a_soft_cap_stands_between_the_sum_and_the_logits() -> None:
    names = shown_in("lm_head", logit_soft_cap=15.0)
    assert names[names.index("contributions") + 1:][:2] == ["logits.uncapped", "logits"]
    state = switched("lm_head", "cats", {"logit_soft_cap": 15.0})
    assert "15 · tanh" in framed("lm_head", state).data["layout"][0]["note"]


def test_layernorm_in_the_final_norm_s_lesson() -> None:
    assert shown_in("final_norm", norm="layernorm")[:6] == [
        "layers.1.output", "final_norm.mean", "final_norm.centered", "final_norm.variance", "norm_epsilon",
        "final_norm.std",
    ]
    assert "scaled.norm.std" in shown_in("final_norm", norm="layernorm")


def test_without_a_mask_no_mask_is_shown() -> None:
    assert "causal_mask" in shown_in("scores")
    assert "causal_mask" not in shown_in("scores", causal=False)
    assert "sqrt_head_size" not in shown_in("scores", scale_scores=False)


@pytest.mark.parametrize(("lesson", "choices"), [
    ("rmsnorm", {"norm": "layernorm"}), ("rmsnorm", {"norm": "none"}), ("rope", {"positions": "none"}),
    ("residual", {"residual": False}), ("final_norm", {"norm": "none"}),
])
def test_what_a_model_has_nothing_of_is_said(lesson: str, choices: Switched) -> None:
    assert not applicability.applies(lesson, config_of(**choices))
    for language in text.LANGUAGES:
        assert is_chinese(text.say(language, f"absent_{lesson}")) == (language == "zh")


def test_notes_of_a_model_are_those_of_its_traits() -> None:
    state = switched("qkv", "cats", {"norm_placement": "post"})
    assert wording.note("note_attention_input", view(state)) == text.say("en", "note_attention_input_post_norm")
    assert wording.note("note_attention_input", view(reader("qkv"))) is None
    assert wording.note("note_branch1", view(reader("residual"))) == text.say("en", "note_branch1_pre_norm")


@pytest.mark.parametrize(("name", "choices", "key"), [
    ("layers.0.output", {"residual": False}, "explain_copy_branch"),
    ("layers.0.output", {"norm_placement": "post"}, "explain_copy"),
    ("layers.0.norm1.normalized", {"norm": "layernorm"}, "explain_divide_standardized"),
    ("layers.0.norm1.normalized", {}, "explain_divide_normalized"),
    ("rope.frequencies", {"rope_direction": -1}, "explain_constant_frequencies_minus"),
    ("embedding.weight", {"tied_head": True}, "explain_parameter_tied"),
    ("embedding.sum", {"positions": "learned"}, "explain_add_embedding"),
])
def test_words_speak_of_the_model_that_is_shown(name: str, choices: Switched, key: str) -> None:
    state = switched("overview", "cats", choices)
    index = (0,) * len(state.trace[name].shape)
    assert explanation(state, name, index)["words"] == text.say("en", key)

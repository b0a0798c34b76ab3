"""The lessons on heads and on leaving parts out: offers, what is gone, what it changes, and the ways between them."""

from __future__ import annotations

import json
from math import inf
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from engine import Edit, Mean, presets, programs, run
from engine.programs.heads import BY_QUERY
from engine.programs.question import Question
from engine.removal import Head, removal
from tests.ui.support import (
    EVERY_PRESET,
    alive,
    edit,
    framed,
    is_chinese,
    on_page,
    opened,
    page,
    reader,
    send,
    state_of,
    strictly,
)
from ui import comparison, hiding, removal_report
from ui.address import address, open_address
from ui.head_effects import outcomes
from ui.state import State
from ui.text import LANGUAGES

WEIGHTS, MASKED = "layers.0.attention.weights", "layers.0.attention.masked_scores"
HEADS, HIDDEN = "layers.1.attention.head_output", "layers.1.mlp.activation"
EVERY_LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)


def selected(tensor: str, *index: int, **choices: Any) -> State:
    state = reader("remove", **choices)
    send(state, "select", tensor=tensor, index=list(index))
    return state


def offers(state: State) -> list[dict[str, Any]]:
    told = alive("remove", state)["removal"]
    strictly(told)
    # as the browser has it
    return list(json.loads(json.dumps(told))["offers"])


def gone(state: State) -> list[dict[str, Any]]:
    return list(json.loads(json.dumps(alive("remove", state)["removal"]))["removed"])


def press(state: State, offer: int, choice: int = 0) -> None:
    chosen = offers(state)[offer]
    send(state, "cover", places=chosen["places"], value=chosen["choices"][choice]["value"])


def back(state: State, number: int) -> None:
    send(state, "cover", places=gone(state)[number]["places"], value=None)


class TestOffers:
    def test_of_a_weight(self) -> None:
        state = selected(WEIGHTS, 0, 1, 2, 1)
        assert [(offer["label"], [choice["value"] for choice in offer["choices"]]) for offer in offers(state)] == [
            ("what on (2) reads of sit (1) in layer 1, head 1", ["-inf"]), ("sit (1) as others read it", ["-inf"]),
            ("layer 1 · head 1", [0, "mean"]),
        ]

    def test_of_a_hidden_unit(self) -> None:
        state = selected(HIDDEN, 0, 2, 5)
        assert [offer["label"] for offer in offers(state)] == [
            "hidden unit f5 of layer 2, at on (2) only", "hidden unit f5 of layer 2",
        ]
        assert [offer["places"] for offer in offers(state)] == [[[HIDDEN, [0, 2, 5]]], [[HIDDEN, [0, None, 5]]]]

    @pytest.mark.parametrize(("tensor", "index", "edits"), [
        (WEIGHTS, (0, 1, 2, 1), [
            (Edit(MASKED, (0, 1, 2, 1), -inf),),
            tuple(Edit(f"layers.{layer}.attention.masked_scores", (0, slice(None), slice(2, None), 1), -inf)
                  for layer in range(2)),
            (Edit("layers.0.attention.head_output", (0, 1), 0.0),),
        ]),
        (HEADS, (0, 1, 2, 0), [(Edit(HEADS, (0, 1, 2), 0.0),), (Edit(HEADS, (0, 1), 0.0),)]),
        ("layers.0.mlp.output", (0, 1, 3), [
            (Edit("layers.0.mlp.output", (0, 1), 0.0),), (Edit("layers.0.mlp.output", (0,), 0.0),),
        ]),
    ])
    def test_each_is_an_edit(self, tensor: str, index: tuple[int, ...], edits: list[tuple[Edit, ...]]) -> None:
        for number, expected in enumerate(edits):
            state = selected(tensor, *index)
            press(state, number)
            assert (state.edits, state.message) == (expected, None)
            assert offers(state)[number]["choices"][0]["set"]
            assert [line["label"] for line in gone(state)] == [offers(state)[number]["label"]]
            back(state, 0)
            assert state.edits == ()

    def test_to_the_mean(self) -> None:
        state = selected(HEADS, 0, 1, 2, 0)
        press(state, 1, 1)
        assert state.edits == (Edit(HEADS, (0, 1), Mean()),)
        assert [choice["set"] for choice in offers(state)[1]["choices"]] == [False, True]
        press(state, 1, 0)
        assert state.edits == (Edit(HEADS, (0, 1), 0.0),)

    def test_nothing_where_there_is_no_part(self) -> None:
        for tensor, *index in (("logits", 0, 2, 90), ("layers.0.attention.Wq", 0, 1), ("layers.0.output", 0, 1, 2)):
            assert offers(selected(tensor, *index)) == []
        assert offers(reader("remove")) == []

    def test_nothing_on_other_pages(self) -> None:
        for lesson in ("overview", "heads"):
            assert alive(lesson, reader(lesson))["removal"] is None

    def test_hidden_controls(self) -> None:
        state = reader("remove", hidden=("controls",))
        send(state, "select", tensor=WEIGHTS, index=[0, 0, 1, 0])
        assert alive("remove", state)["removal"] is None

    @EVERY_LANGUAGE
    def test_words(self, language: str) -> None:
        for tensor, index in ((WEIGHTS, (0, 1, 2, 1)), (HEADS, (0, 1, 2, 0)), (HIDDEN, (0, 2, 5)),
                              ("layers.0.attention.output", (0, 1, 2)), ("layers.0.mlp.output", (0, 1, 2))):
            state = selected(tensor, *index, language=language)
            for offer in offers(state):
                assert is_chinese(offer["label"]) == (language == "zh"), offer["label"]

    def test_tokens_that_come_again_are_told_apart(self) -> None:
        state = selected(WEIGHTS, 0, 0, 2, 0, text="sit sit sit")
        assert offers(state)[0]["label"] == "what sit (2) reads of sit (0) in layer 1, head 0"

    def test_a_part_beyond_a_shorter_sentence_stays_in_the_list(self) -> None:
        state = selected(HIDDEN, 0, 2, 5)
        press(state, 0)
        send(state, "text", value="Cats sit")
        assert [line["label"] for line in gone(state)] == ["hidden unit f5 of layer 2, at (2) only"]
        assert np.array_equal(state.trace["logits"].data, state.baseline["logits"].data)

    @EVERY_PRESET
    @pytest.mark.parametrize("switches", [(), (("causal", False),), (("residual", False),)], ids=str)
    def test_every_offer_of_the_board_works(self, preset: str, switches: Any) -> None:
        state = reader("remove", preset=preset, switches=switches)
        frame = framed("remove", state)
        for name in frame.names:
            send(state, "select", tensor=name, index=[0] * len(state.trace[name].shape))
            for number, offer in enumerate(offers(state)):
                for choice in range(len(offer["choices"])):
                    press(state, number, choice)
                    assert state.message is None
                    assert [line["label"] for line in gone(state)] == [offer["label"]]
                    send(state, "cover", places=offer["places"], value=None)
        assert state.edits == ()


class TestSeveral:
    def several(self) -> State:
        state = selected(WEIGHTS, 0, 1, 2, 1)
        edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
        for number in (1, 2):
            press(state, number)
        return state

    def test_undo_and_the_link(self) -> None:
        state = self.several()
        assert [line["how"] for line in gone(state)] == ["masked with −∞", "set to 0"]
        other = open_address(dict(parse_qsl(address(state)[1:])), None)
        other.lesson = "remove"
        assert other.edits == state.edits
        assert gone(other) == gone(state)
        send(state, "undo")
        assert len(gone(state)) == 1

    def test_all_back_leaves_other_edits(self) -> None:
        state = self.several()
        send(state, "cover", places=[place for line in gone(state) for place in line["places"]], value=None)
        assert state.edits == (Edit("layers.0.attention.Wq", (0, 1), 0.5),)

    def test_the_report_holds_other_edits_on_both_sides(self) -> None:
        state = self.several()
        before = removal_report.without(state)
        assert before.edits == (Edit("layers.0.attention.Wq", (0, 1), 0.5),)
        changed = [each.name for each in comparison.differences(state, before) if each.where is not None]
        assert changed[0] == MASKED
        assert "layers.0.attention.q" not in changed
        assert changed[-1] == "probabilities"

    def test_where_only_infinities_differ_there_is_a_cell_and_no_number(self) -> None:
        state = selected(WEIGHTS, 0, 1, 2, 1)
        press(state, 0)
        (first, *_) = (each for each in comparison.differences(state, state.baseline) if each.where is not None)
        assert (first.name, first.largest, first.where) == (MASKED, None, "L1·masked_scores[h1, on, sit]")


class TestHeads:
    @EVERY_PRESET
    @pytest.mark.parametrize("word", ["zero", "mean"])
    def test_outcomes_are_runs_without_each_head(self, preset: str, word: str) -> None:
        state = reader("heads", preset=preset)
        state.set_control("removed_to", word)
        model, question = state.model, state.question
        before, without = outcomes(preset, 1, (), state.ids, (), question, word)
        assert list(without) == [
            Head(layer, head) for layer in range(model.config.layers) for head in range(model.config.heads)
        ]
        for part, outcome in [(None, before), *without.items()]:
            value = 0.0 if word == "zero" else Mean()
            edits = removal(part, model.config, value) if part else ()
            trace = run(model, [list(state.ids)], edits=edits)
            logits, odds = (trace[name].row(0, len(state.ids) - 1) for name in ("logits", "probabilities"))
            assert outcome.logit == pytest.approx(logits[question.token], rel=1e-12, abs=1e-12)
            assert outcome.lead == pytest.approx(logits[question.token] - logits[question.rival], rel=1e-12, abs=1e-12)
            assert outcome.probability == pytest.approx(odds[question.token], rel=1e-12)

    def test_they_follow_edits_and_leave_those_of_lessons_aside(self) -> None:
        question = Question(90, 91)
        edits = (Edit("layers.0.attention.Wq", (0, 1), 0.5), Edit("softmax_demo.factor", (), 2.0))
        plain, _ = outcomes("cats", 1, (), (12, 45, 78), (), question, "zero")
        moved, without = outcomes("cats", 1, (), (12, 45, 78), edits, question, "zero")
        assert moved != plain
        assert moved.logit == run(presets.load("cats"), "Cats sit on", edits=edits[:1])["logits"].data[0, 2, 90]
        gone = (*edits, Edit("layers.1.attention.head_output", (0, 0), 0.0))
        again, _ = outcomes("cats", 1, (), (12, 45, 78), gone, question, "zero")
        assert again == without[Head(1, 0)]

    def test_the_ranking_is_sorted_by_size(self) -> None:
        told = alive("heads", reader("heads", preset="scratch"))["ranking"]
        strictly(told)
        sizes = [abs(row["logit"]) for row in told["rows"]]
        assert sizes == sorted(sizes, reverse=True)
        assert told["largest"] == sizes[0]
        assert len(sizes) == 4

    def test_it_says_who_leads_without_each_head_and_what_it_starts_from(self) -> None:
        state = reader("heads", preset="little_world", text="the cat with the dogs")
        told = alive("heads", state)["ranking"]
        assert told["caption"].startswith("With all heads in place the logit of hides is ")
        _, without = outcomes("little_world", 1, (), state.ids, (), state.question, "zero")
        words = {row["label"]: row["leader"] for row in told["rows"]}
        for part, outcome in without.items():
            trace = run(state.model, [list(state.ids)], edits=removal(part, state.model.config, 0.0))
            assert outcome.leader == np.argmax(trace["logits"].row(0, len(state.ids) - 1))
        assert len(set(words.values())) > 1
        edit(state, "layers.0.attention.head_output", (0, 0, 1, 0), 0.0)
        assert alive("heads", state)["ranking"]["caption"].startswith("With your edits and no further head left out")

    def test_numbers_that_ran_over_come_as_words(self) -> None:
        state = reader("heads")
        edit(state, "lm_head.weight", (90, 0), 1e308)
        edit(state, "final_norm.weight", (0,), 1e308)
        strictly(alive("heads", state)["ranking"])

    def test_no_ranking_on_other_pages(self) -> None:
        assert alive("remove", reader("remove"))["ranking"] is None

    def test_every_head_of_every_layer_has_a_small_grid_with_ways(self) -> None:
        frame = framed("heads", reader("heads"))
        small = [grid for grid in frame.data["grids"].values() if grid.get("small")]
        assert [(grid["tensor"], grid["base"]) for grid in small] == [
            (f"layers.{layer}.attention.weights", [0, head]) for layer in range(2) for head in range(2)
        ]
        assert all(grid["dense"] for grid in small)
        assert [(way["lesson"], way["layer"], way["head"]) for way in small[3]["ways"]] == [
            ("scores", 1, 1), ("remove", 1, 1),
        ]
        assert frame.uses_layer
        assert not frame.uses_head

    def test_one_line_for_each_head(self) -> None:
        frame = framed("heads", reader("heads"))
        (table,) = [grid for grid in frame.data["grids"].values() if grid["title"] == "where the weight lies"]
        assert [row["text"] for row in table["rows"]] == [
            f"layer {layer + 1} · head {head}" for layer in range(2) for head in range(2)
        ]
        assert [look["scale"] for look in table["looks"]] == ["share"] * 3 + ["diverging"] * 2
        assert len(table["columns"]) == len(BY_QUERY)

    def test_a_way_chooses_layer_and_head(self) -> None:
        state = reader("heads")
        send(state, "go", lesson="remove", layer=1, head=1)
        assert (state.destination, state.choices.layer, state.choices.head) == ("remove", 1, 1)
        send(state, "go", lesson="scores", layer=7, head=-3)
        assert (state.choices.layer, state.choices.head) == (1, 0)
        send(state, "go", lesson="values")
        assert (state.choices.layer, state.choices.head) == (1, 0)

    def test_the_program_runs_on_its_own_page_alone(self) -> None:
        assert "heads.0.received" in reader("heads").trace
        assert "heads.0.received" not in reader("remove").trace
        assert programs.of("remove") is programs.lessons


@pytest.mark.parametrize("lesson", ["heads", "remove"])
@EVERY_LANGUAGE
def test_the_page_as_a_whole(lesson: str, language: str) -> None:
    app = opened(lang=language)
    on_page(app, lesson)
    assert state_of(app).lesson == lesson


def test_the_report_has_the_prediction_and_the_tensors() -> None:
    app = opened(**dict(parse_qsl(address(_with_a_head_removed())[1:])))
    on_page(app, "remove")
    prediction, tensors = (frame.value for frame in app.dataframe)
    assert prediction["token"].iloc[0] == "mats · 90"
    names = list(tensors["name"])
    assert names[0] == "layers.0.attention.head_output"
    assert names[-1] == "probabilities"


def _with_a_head_removed() -> State:
    state = selected(WEIGHTS, 0, 1, 2, 1)
    press(state, 2)
    return state


def test_a_link_without_controls_has_no_list_to_put_back() -> None:
    sections = hiding.without_controls(page("remove").sections)
    assert "section_removed" not in [part.title for part in sections]

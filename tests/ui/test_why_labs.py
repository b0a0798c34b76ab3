"""The labs that ask why: switches over whole slices, tables of several tensors, their pictures and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Edit, presets, run
from engine.programs.why_residuals import LAYERS, PATHS
from engine.programs.why_sqrt import DIVISIONS, SIZES
from engine.variants import variant
from tests.ui.support import (
    ARCHITECTURES,
    EVERY_PRESET,
    addresses,
    alive,
    decoded,
    edit,
    framed,
    numbers_at,
    page,
    reader,
    send,
    strictly,
)
from tests.ui.test_explanation import check, sample
from ui import board
from ui.address import address, open_address
from ui.layout import Switch, grid
from ui.state import State
from ui.text import LANGUAGES

ATTENTION, MLP = "layers.0.attention.output", "layers.0.mlp.output"
LABS = ("why_residuals", "why_sqrt", "why_layers")
EVERY_LAB = pytest.mark.parametrize("lab", LABS)


def cover(state: State, places: list[list[Any]], value: float | None) -> None:
    send(state, "cover", places=places, value=value)


def items(state: State, kind: str) -> list[dict[str, Any]]:
    layout = framed(state.lesson, state).data["layout"]
    return [item for part in layout for item in part["items"] if item["type"] == kind]


def reopened(state: State) -> State:
    query = dict(part.split("=", 1) for part in address(state).removeprefix("?").split("&"))
    other = open_address(query, None)
    other.lesson = state.lesson
    return other


def chart(lab: str, state: State) -> dict[str, Any]:
    draw = page(lab).chart
    assert draw is not None
    figure = draw(state)
    strictly(figure)
    return figure


# ---- switches

def test_a_switch_for_each_part_of_each_layer() -> None:
    switches = items(reader("why_layers"), "switch")
    assert [(switch["label"], switch["places"]) for switch in switches[:6]] == [
        ("attention · Layer 1", [[ATTENTION, [0]]]), ("attention · Layer 2", [["layers.1.attention.output", [0]]]),
        ("MLP · Layer 1", [[MLP, [0]]]), ("MLP · Layer 2", [["layers.1.mlp.output", [0]]]),
        ("whole layer · Layer 1", [[ATTENTION, [0]], [MLP, [0]]]),
        ("whole layer · Layer 2", [["layers.1.attention.output", [0]], ["layers.1.mlp.output", [0]]]),
    ]
    assert {(switch["off"], switch["on"]) for switch in switches} == {(0.0, None)}
    grids = framed("why_layers", reader("why_layers")).data["grids"]
    for switch in switches[:6]:
        assert [grids[key]["tensor"] for key in (switch["grid"], *switch["also"])] == [
            tensor for tensor, _ in switch["places"]
        ]


def test_a_switch_of_the_chosen_head_alone() -> None:
    (switch,) = items(reader("why_layers", layer=1, head=1), "switch")[-1:]
    assert switch["places"] == [["layers.1.attention.head_output", [0, 1]]]


def test_a_switch_of_one_number_keeps_its_place() -> None:
    (switch,) = items(reader("scores"), "switch")
    assert (switch["places"], switch["also"]) == ([["sqrt_head_size", []]], [])
    assert switch["off"] == 1.0


def test_switches_are_optional_where_their_tensors_are() -> None:
    assert Switch(grid("a"), "b").also == ()


def test_a_part_switched_off_is_0_and_comes_back() -> None:
    state = reader("why_layers")
    before = state.trace["logits"].data
    cover(state, [[MLP, [0]]], 0.0)
    assert not state.trace[MLP].data.any()
    assert state.edits == (Edit(MLP, (0,), 0.0),)
    np.testing.assert_array_equal(
        state.trace["logits"].data, run(presets.load("cats"), "Cats sit on", edits=state.edits)["logits"].data
    )
    assert not np.array_equal(state.trace["logits"].data, before)
    cover(state, [[MLP, [0]]], None)
    assert state.edits == ()
    np.testing.assert_array_equal(state.trace["logits"].data, before)


def test_a_whole_layer_is_one_step_of_undo_and_stays_in_the_link() -> None:
    state = reader("why_layers")
    edit(state, "lm_head.weight", (90, 0), 0.7)
    cover(state, [[ATTENTION, [0]], [MLP, [0]]], 0.0)
    np.testing.assert_array_equal(state.trace["layers.0.output"].data, state.trace["embedding.output"].data)
    opened = reopened(state)
    assert opened.edits == state.edits
    np.testing.assert_array_equal(opened.trace["logits"].data, state.trace["logits"].data)
    send(state, "undo")
    assert [each.name for each in state.edits] == ["lm_head.weight"]
    send(state, "redo")
    assert len(state.edits) == 3


def test_cells_that_were_set_by_hand_stay_when_a_part_comes_back() -> None:
    state = reader("why_layers")
    edit(state, MLP, (0, 1, 2), 5.0)
    cover(state, [[MLP, [0]]], 0.0)
    assert not state.trace[MLP].data.any()
    cover(state, [[MLP, [0]]], None)
    assert state.edits == (Edit(MLP, (0, 1, 2), 5.0),)


def test_a_part_stays_out_in_another_sentence() -> None:
    state = reader("why_layers")
    cover(state, [[MLP, [0]]], 0.0)
    send(state, "text", value="on sit Cats on sit")
    assert state.trace[MLP].shape == (1, 5, 4)
    assert not state.trace[MLP].data.any()


def test_all_cells_of_a_switched_part_are_marked_as_edited() -> None:
    state = reader("why_layers")
    cover(state, [[MLP, [0]]], 0.0)
    frame, live = framed("why_layers", state), alive("why_layers", state)
    key = next(key for key, drawn in frame.data["grids"].items() if drawn["tensor"] == MLP and len(drawn["rows"]) == 3)
    assert live["edited"][key] == list(range(12))
    assert not decoded(live["values"][key]).any()


@pytest.mark.parametrize(("places", "value"), [
    ([["no.such", [0]]], 0.0), ([[MLP, [0, None, 9]]], 0.0), ([[MLP, [0, None, None, None]]], 0.0),
    ([[MLP, ["a"]]], 0.0), ([[MLP, [0]]], "zero"), ([[MLP, [0]]], float("inf")), ([["input_ids", [0]]], 0.0),
    ([MLP], 0.0), (None, None),
])
def test_what_cannot_be_covered_leaves_a_message(places: Any, value: Any) -> None:
    state = reader("why_layers")
    cover(state, places, value)
    assert state.edits == ()
    assert state.message is not None
    assert state.message[0] == "error"


def test_a_hidden_control_switches_nothing() -> None:
    state = reader("why_layers", hidden=("controls",))
    cover(state, [[MLP, [0]]], 0.0)
    assert state.edits == ()


# ---- tables

def test_tables_show_single_numbers_of_many_tensors() -> None:
    for lab, names in (
        ("why_residuals", [f"why_residuals.{path}.{layer}.gradient_size" for layer in LAYERS for path in PATHS]),
        ("why_sqrt", [f"why_sqrt.D{size}.{division}.entropy" for size in SIZES for division in DIVISIONS]),
    ):
        state = reader(lab)
        found = [
            drawn for drawn in framed(lab, state).data["grids"].values()
            if [name for name, _ in addresses(drawn)] == names
        ]
        assert len(found) == 1
        (table,) = found
        np.testing.assert_array_equal(decoded(table["baseline"]), numbers_at(state.trace, addresses(table)))
        assert (len(table["rows"]), len(table["columns"])) == (len(names) // 3, 3)


@EVERY_PRESET
@pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
@EVERY_LAB
def test_every_architecture_has_a_board_and_a_chart(lab: str, switches: dict[str, Any], preset: str) -> None:
    state = reader(lab, preset=preset)
    state.switch(**switches)
    frame = framed(lab, state)
    for drawn in frame.data["grids"].values():
        numbers = decoded(drawn["baseline"])
        np.testing.assert_array_equal(numbers, numbers_at(state.baseline, addresses(drawn)))
    strictly(alive(lab, state))
    assert chart(lab, state)["data"]


# ---- explanations

@pytest.mark.parametrize("language", LANGUAGES)
@EVERY_LAB
def test_cells_explain_themselves(lab: str, language: str) -> None:
    state = reader(lab, language=language)
    edit(state, "why_residuals.gain" if lab == "why_residuals" else "why_sqrt.seed", (), 3.0)
    kinds: dict[str, int] = {}
    for name, index in sample(state.trace):
        if not name.startswith(lab):
            continue
        # the layers and sizes are alike: a few cells of each kind of step are enough
        kind = ".".join(part for part in name.split(".") if not part.strip("D").isdigit())
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= 8:
            check(state, name, index)


def test_the_two_roads_in_the_panel() -> None:
    state = reader("why_residuals")
    send(state, "select", tensor="why_residuals.residual.1.gradient", index=[0], trail="start")
    told = alive("why_residuals", state)["explanation"]
    operands = [piece["tensor"] for piece in told["pieces"] if "tensor" in piece]
    assert operands == ["why_residuals.residual.2.gradient", "why_residuals.residual.1.through"]
    assert "times 1" in told["words"]


# ---- charts

def test_the_chart_of_gradients_shows_their_sizes() -> None:
    state = reader("why_residuals")
    drawn = chart("why_residuals", state)
    assert drawn["layout"]["yaxis"]["type"] == "log"
    for series, path in zip(drawn["data"], PATHS, strict=True):
        assert series["x"] == [*LAYERS]
        sizes = [state.trace[f"why_residuals.{path}.{layer}.gradient_size"] for layer in LAYERS]
        assert series["y"] == [float(size.data) for size in sizes]
    edit(state, "why_residuals.gain", (), 0.0)
    before, after = (chart("why_residuals", state)["data"][start:][:3] for start in (0, 3))
    assert [series["y"] for series in before] == [series["y"] for series in drawn["data"]]
    assert after[0]["y"] == [0.0] * 10
    assert after[1]["y"] == [1.0] * 10


def test_the_chart_of_scores_shows_three_measures_and_the_root() -> None:
    state = reader("why_sqrt")
    theory, *measured = chart("why_sqrt", state)["data"]
    numbers = iter(measured)
    for measure in ("spread", "entropy", "slope"):
        for division in DIVISIONS:
            series = next(numbers)
            expected = [float(state.trace[f"why_sqrt.D{size}.{division}.{measure}"].data) for size in SIZES]
            assert (series["x"], series["y"]) == ([*SIZES], expected)
    assert theory["y"] == pytest.approx([size**0.5 for size in SIZES])


@EVERY_PRESET
def test_the_chart_of_parts_is_made_of_real_runs(preset: str) -> None:
    state = reader("why_layers", preset=preset)
    drawn = chart("why_layers", state)["data"]
    model, sentence = presets.load(preset), presets.SENTENCES[preset]
    removals: list[tuple[str, ...]] = [()]
    for layer in range(model.config.layers):
        parts = tuple(f"layers.{layer}.{part}.output" for part in ("attention", "mlp"))
        removals += [*((part,) for part in parts), parts]
    runs = [
        run(model, sentence, edits=[Edit(name, (), 0.0) for name in removed])["probabilities"].data[0, -1]
        for removed in removals
    ]
    # the last bar is of a model without activations
    runs.append(run(variant(model, activation="none"), sentence)["probabilities"].data[0, -1])
    tokens = presets.CANDIDATES[preset] or np.argsort(-runs[0], kind="stable")[:3].tolist()
    for series, token in zip(drawn, tokens, strict=True):
        np.testing.assert_allclose(series["x"], [odds[token] for odds in runs], rtol=1e-9)
        assert len({*series["y"]}) == len(runs)


def test_the_chart_of_parts_follows_the_reader() -> None:
    state = reader("why_layers")
    cover(state, [[MLP, [0]]], 0.0)
    leading = chart("why_layers", state)["data"][0]["x"]
    assert leading[0] == leading[2] == float(state.trace["probabilities"].data[0, 2, 90])
    assert board.view(state).lesson == "why_layers"

"""What tensors, axes and cells are called."""

from __future__ import annotations

import numpy as np
import pytest

from engine import presets
from formats.traces import to_csv
from tests.ui.support import reader
from ui import naming
from ui.text import LANGUAGES, catalogue


@pytest.mark.parametrize(("tensor", "short"), [
    ("layers.0.attention.scores", "scores"), ("layers.1.norm1.output", "norm1.output"), ("logits", "logits"),
    ("layers.0.attention.output", "attention.output"), ("layers.0.output", "output"),
    ("layers.0.mlp.output", "mlp.output"),
    ("layers.0.attention.weights.max", "weights.max"), ("final_norm.output", "final_norm.output"),
])
def test_short_names(tensor: str, short: str) -> None:
    assert naming.short_name(tensor) == short


def test_short_names_of_one_layer_are_distinct() -> None:
    names = [name for name in reader().trace if not name.startswith("layers.1.")]
    assert len({naming.short_name(name) for name in names}) == len(names)


@pytest.mark.parametrize(("tensor", "hue"), [
    ("layers.0.attention.q_rotated", "q"), ("layers.0.attention.Wk", "k"),
    ("layers.1.attention.v_heads", "v"),
    ("layers.0.output", "stream"), ("layers.0.residual1", "stream"), ("embedding.output", "stream"),
    ("layers.0.mlp.output", "mlp"), ("layers.0.attention.weights", "weights"), ("final_norm.output", "norm"),
    ("logits", "logits"), ("probabilities", "logits"), ("norm_epsilon", "norm"), ("input_ids", "none"),
    ("layers.0.norm1.weight", "norm"), ("layers.1.norm2.weight", "norm"), ("lm_head.weight", "logits"),
    ("embedding.sum", "stream"), ("position_embedding.weight", "stream"), ("layers.0.residual2", "stream"),
    ("layers.0.attention.bq", "q"), ("layers.0.attention.bk", "k"), ("layers.0.attention.bo", "v"),
    ("layers.0.attention.q_norm.output", "q"), ("layers.0.attention.dropped", "v"), ("layers.0.mlp.b_up", "mlp"),
    ("layers.0.norm1.variance", "norm"), ("final_norm.bias", "norm"), ("logits.uncapped", "logits"),
])
def test_one_hue_for_each_family(tensor: str, hue: str) -> None:
    assert naming.hue(tensor) == hue


def test_shares_are_what_sums_to_one() -> None:
    for name, tensor in reader().trace.items():
        if naming.is_share(name):
            assert tensor.data.sum(axis=-1) == pytest.approx(1)
            assert tensor.op == "share"
        else:
            assert tensor.op != "share"


@pytest.mark.parametrize("preset", presets.NAMES)
def test_every_axis_has_a_letter_and_words(preset: str) -> None:
    for tensor in reader(preset=preset).trace.values():
        for axis in tensor.axes:
            assert naming.AXIS_LETTERS[axis]
            assert all(f"axis_{axis}" in catalogue(language) for language in LANGUAGES)


def test_shapes_in_letters_and_numbers() -> None:
    trace = reader().trace
    assert naming.shape_text(trace["layers.0.attention.scores"]) == "[B, H, T, T] = [1, 2, 3, 3]"
    assert naming.shape_text(trace["layers.0.mlp.W_up"]) == "[C, F] = [4, 8]"
    assert naming.shape_text(trace["lm_head.weight"]) == "[V, C] = [256, 4]"
    assert naming.shape_text(trace["norm_epsilon"]) == ""


def test_axes_in_the_readers_language() -> None:
    assert naming.axes_text("en", ("query", "key")) == "query × key"
    assert naming.axes_text("zh", ("position", "feature")) == " × ".join(
        catalogue("zh")[f"axis_{axis}"] for axis in ("position", "feature")
    )


def test_repeated_tokens_get_labels_of_their_own() -> None:
    """C09: 0:red, 1:fox, 2:red."""
    state = reader(preset="scratch", text="red fox red")
    tensor = state.trace["layers.0.attention.weights"]
    labels = naming.axis_labels(state.model, state.ids, tensor)
    assert labels == [["b0"], ["h0", "h1"], ["0:red", "1:fox", "2:red"], ["0:red", "1:fox", "2:red"]]
    assert "0,b0,1,h1,2,2:red,0,0:red," in to_csv(tensor, labels)


@pytest.mark.parametrize(("tensor", "index", "title"), [
    ("layers.0.attention.scores", (0, 0, 2, 1), "L1·scores[h0, on, sit]"),
    ("layers.1.attention.scores", (0, 1, 0, 1), "L2·scores[h1, Cats, sit]"),
    ("layers.1.output", (0, 2, 3), "L2·output[on, c3]"), ("layers.0.attention.Wq", (0, 1), "L1·Wq[c0, c1]"),
    ("layers.0.attention.output", (0, 0, 0), "L1·attention.output[Cats, c0]"),
    ("embedding.output", (0, 0, 0), "embedding.output[Cats, c0]"), ("logits", (0, 2, 90), "logits[on, mats]"),
    ("lm_head.weight", (7, 0), "lm_head.weight[#7, c0]"), ("norm_epsilon", (), "norm_epsilon"),
    ("input_ids", (0, 1), "input_ids[sit]"),
])
def test_titles_of_cells(tensor: str, index: tuple[int, ...], title: str) -> None:
    state = reader()
    assert naming.cell_title(state.model, state.ids, state.trace[tensor], tensor, index) == title


def test_titles_of_cells_are_never_alike() -> None:
    state = reader(text="on sit on")
    titles = [
        naming.cell_title(state.model, state.ids, tensor, name, index)
        for name, tensor in state.trace.items() if name != "input_ids" for index in np.ndindex(*tensor.shape)
    ]
    assert len({*titles}) == len(titles)


@pytest.mark.parametrize(("pairing", "text"), [
    ("interleaved", "interleaved: (d0, d1), (d2, d3)"), ("half", "half: (d0, d2), (d1, d3)"),
])
def test_pairs_in_words(pairing: str, text: str) -> None:
    assert naming.pairs_text("en", reader(preset="scratch", pairing=pairing).model.config) == text


@pytest.mark.parametrize("preset", presets.NAMES)
def test_labels_on_an_axis_are_never_alike(preset: str) -> None:
    text = {
        "cats": "on on 255 0", "today": "天天 50256 0", "copy_machine": "abab", "little_world": "on on . 0",
        "scratch": "red red fox red",
    }[preset]
    state = reader(preset=preset, text=text)
    for tensor in state.trace.values():
        by_axis = naming.axis_labels(state.model, state.ids, tensor)
        assert [len(labels) for labels in by_axis] == [*tensor.shape]
        assert [len({*labels}) for labels in by_axis] == [*tensor.shape]


def test_rows_of_a_position_table_are_places_and_not_tokens() -> None:
    state = reader(preset="today")
    table, rows = (state.trace[f"position_embedding.{part}"] for part in ("weight", "output"))
    assert naming.shape_text(table) == "[max_positions, C] = [32, 12]"
    assert naming.axes(table) == ("table_position", "feature")
    assert naming.axis_labels(state.model, state.ids, table)[0] == [str(place) for place in range(32)]
    assert naming.cell_title(state.model, state.ids, table, "position_embedding.weight", (31, 0)) == (
        "position_embedding.weight[31, c0]"
    )
    assert naming.shape_text(rows) == "[T, C] = [5, 12]"
    assert naming.cell_title(state.model, state.ids, rows, "position_embedding.output", (2, 0)) == (
        "position_embedding.output[2:天, c0]"
    )


def test_positions_that_a_cache_holds_have_their_number() -> None:
    state = reader(text="on")
    assert naming.cell_label(state.model, state.ids, "key", 0) == "on"
    assert naming.cell_label(state.model, state.ids, "key", 3) == "3"
    scores = reader(text="Cats sit on").trace["layers.0.attention.scores"]
    title = naming.cell_title(state.model, state.ids, scores, "layers.0.attention.scores", (0, 0, 0, 2))
    assert title == "L1·scores[h0, on, 2]"


def test_a_token_without_a_word_is_its_number() -> None:
    assert naming.token_label(presets.load("cats"), 90) == "mats"
    assert naming.token_label(presets.load("cats"), 7) == "#7"

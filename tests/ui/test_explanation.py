"""The explanation panel: its formula and its NumPy line both give the number that they explain."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
import pytest

from engine import Edit, Trace, explain, presets
from engine.explain import LEAVES
from tests.ui.support import Cell, edit, is_chinese, reader, send
from ui.explanation import FORMULAS, NUMPY, SPECIFIC, explanation, literal
from ui.state import Choices, State
from ui.text import LANGUAGES, catalogue

CELLS_PER_TENSOR = 12
Q, WQ = "layers.0.attention.q", "layers.0.attention.Wq"
MASKED, WEIGHTS = "layers.0.attention.masked_scores", "layers.0.attention.weights"

# what the signs of a formula mean, in Python
SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "²": "**2", "√": "sqrt"})
FUNCTIONS = {
    "sqrt": math.sqrt, "exp": math.exp, "cos": math.cos, "sin": math.sin,
    "max": lambda *values: max(values),
}


def edited(**choices: Any) -> State:
    """A reader with a changed weight, a changed constant, an override and a masked key."""
    state = reader(**choices)
    edit(state, WQ, (0, 1), 0.37)
    edit(state, "norm_epsilon", (), 0.01)
    edit(state, "layers.0.attention.k", (0, 1, 2), -1.7)
    edit(state, MASKED, (0, 1, 2, 0), "-inf")
    edit(state, "layers.1.attention.weights.sum", (0, 0, 1), 2.5)
    return state


READERS = {
    "cats": reader(), "cats, one token": reader(text="on"), "cats, edited": edited(),
    "cats, repeated": reader(text="on sit on 0"), "scratch": reader(preset="scratch"),
    "scratch, half": reader(preset="scratch", pairing="half"), "scratch, edited": edited(preset="scratch"),
}
EVERY_READER = pytest.mark.parametrize("state", READERS.values(), ids=READERS.keys())


def sample(trace: Trace) -> Iterator[Cell]:
    """Cells from all over every tensor, the first and the last among them."""
    for name, tensor in trace.items():
        size = math.prod(tensor.shape)
        for flat in sorted({*np.linspace(0, size - 1, CELLS_PER_TENSOR).astype(int).tolist()}):
            yield name, tuple(int(part) for part in np.unravel_index(flat, tensor.shape))


def python(line: str, trace: Trace) -> float:
    return float(eval(line, {"trace": trace, "np": np}))


def worked_out(pieces: list[dict[str, Any]]) -> float:
    """The value of a formula as it is displayed, from its operands at full precision."""
    texts = [piece.get("text") for piece in pieces]
    # a cell of a table is followed by the id that led to its row
    counted = pieces[:texts.index(", ID ")] if ", ID " in texts else pieces
    words = [
        piece["text"].translate(SIGNS) if "text" in piece else f"({float(piece['value'])!r})"
        for piece in counted
    ]
    line = "".join(words).replace("inf", "INF")
    return float(eval(line, {"__builtins__": {}, "INF": inf, **FUNCTIONS}))


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-14)


@EVERY_READER
def test_the_numpy_line_gives_the_value(state: State) -> None:
    for name, index in sample(state.trace):
        line = explanation(state, name, index)["numpy"]
        assert python(line, state.trace) == close(float(state.trace[name].data[index])), (name, index, line)


@EVERY_READER
def test_the_formula_gives_the_value(state: State) -> None:
    for name, index in sample(state.trace):
        told = explanation(state, name, index)
        assert float(told["value"]) == state.trace[name].data[index]
        if told["pieces"]:
            value = told["value"] if told["computed"] is None else told["computed"]
            assert worked_out(told["pieces"]) == close(float(value)), (name, index)
        else:
            assert explain(state.trace, name, index).op in LEAVES


@EVERY_READER
def test_every_operand_is_a_link_to_its_cell(state: State) -> None:
    for name, index in sample(state.trace):
        operands = [piece for piece in explanation(state, name, index)["pieces"] if "tensor" in piece]
        for operand in operands:
            there = state.trace[operand["tensor"]].data[tuple(operand["index"])]
            assert float(operand["value"]) == there
            assert operand["label"]
            assert "None" not in operand["label"]
        if not operands:
            assert explain(state.trace, name, index).op in LEAVES


@EVERY_READER
def test_operands_are_all_that_the_engine_names(state: State) -> None:
    """As many as the engine's terms; a leaf is its own term and has none."""
    for name, index in sample(state.trace):
        cell = explain(state.trace, name, index)
        cell = cell.computed or cell
        count = sum("tensor" in piece for piece in explanation(state, name, index)["pieces"])
        expected = 0 if cell.op in LEAVES else len(cell.terms)
        assert count == expected, (name, index)


@EVERY_READER
def test_copies_show_where_they_come_from_and_ids_are_whole(state: State) -> None:
    for name, index in sample(state.trace):
        cell = explain(state.trace, name, index)
        copied = (cell.computed or cell).op in {"lookup", "split_heads", "merge_heads", "take"}
        here = explanation(state, name, index)
        assert here["integer"] == (name == "input_ids")
        for piece in here["pieces"]:
            if "text" in piece:
                assert set(piece) == {"text"}
            else:
                whole = piece["tensor"] == "input_ids"
                assert piece["show"] == ("integer" if whole else "label" if copied else "number"), (name, index)


@EVERY_READER
def test_a_looked_up_cell_names_the_row_that_its_id_says(state: State) -> None:
    for position, token in enumerate(state.ids):
        cell, between, number = explanation(state, "embedding.output", (0, position, 1))["pieces"]
        assert (cell["tensor"], cell["index"], cell["show"]) == ("embedding.weight", [token, 1], "label")
        assert between == {"text": ", ID "}
        assert (number["tensor"], number["index"], number["show"]) == ("input_ids", [0, position], "integer")
        assert number["value"] == token


def operations() -> set[str]:
    """Of every step that a lesson's trace has, unnamed ones included."""
    traces = [reader(preset=name).trace for name in presets.NAMES]
    return {node.operation for trace in traces for node in trace.recording.plan.nodes}


def test_every_operation_has_a_formula_and_a_line() -> None:
    assert operations() - LEAVES <= set(FORMULAS)
    assert set(FORMULAS) == set(NUMPY)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cell_has_words(language: str) -> None:
    for state in (reader(language=language), reader(language=language, preset="scratch", pairing="half")):
        for name, index in sample(state.trace):
            words = explanation(state, name, index)["words"]
            assert words.strip()
            assert not {"{", "}"} & set(words)
            assert is_chinese(words) == (language == "zh"), (name, words)


def test_specific_words_are_of_steps_that_exist() -> None:
    state = reader()
    steps = {(tensor.op, name.rpartition(".")[2]) for name, tensor in state.trace.items()}
    assert steps >= SPECIFIC


def told(state: State, name: str, *index: int) -> dict[str, Any]:
    return explanation(state, name, index)


def in_line(pieces: list[dict[str, Any]]) -> str:
    return "".join(piece["label"] if "label" in piece else piece["text"] for piece in pieces)


@pytest.mark.parametrize(("name", "index", "title", "formula"), [
    ("layers.0.attention.scores", (0, 0, 2, 1), "L1·scores[h0, on, sit]",
     "L1·dot[h0, on, sit] ÷ sqrt_head_size"),
    ("layers.0.residual1", (0, 2, 0), "L1·residual1[on, c0]",
     "embedding.output[on, c0] + L1·attention.output[on, c0]"),
    ("layers.1.residual1", (0, 2, 0), "L2·residual1[on, c0]",
     "L1·output[on, c0] + L2·attention.output[on, c0]"),
    ("layers.0.norm1.mean_square", (0, 0), "L1·norm1.mean_square[Cats]",
     "(embedding.output[Cats, c0]² + embedding.output[Cats, c1]² + embedding.output[Cats, c2]² + "
     "embedding.output[Cats, c3]²) ÷ 4"),
    ("layers.0.norm1.rms", (0, 0), "L1·norm1.rms[Cats]", "√(L1·norm1.mean_square[Cats] + norm_epsilon)"),
    ("layers.0.attention.q_rotated", (0, 0, 2, 0), "L1·q_rotated[h0, on, d0]",
     "L1·q_heads[h0, on, d0] × rope.cosines[on, p0] − L1·q_heads[h0, on, d1] × rope.sines[on, p0]"),
    ("layers.0.attention.q_rotated", (0, 0, 2, 1), "L1·q_rotated[h0, on, d1]",
     "L1·q_heads[h0, on, d0] × rope.sines[on, p0] + L1·q_heads[h0, on, d1] × rope.cosines[on, p0]"),
    ("layers.0.attention.weights", (0, 0, 1, 0), "L1·weights[h0, sit, Cats]",
     "L1·weights.exp[h0, sit, Cats] ÷ L1·weights.sum[h0, sit]"),
    ("layers.1.attention.row_sums", (0, 1, 1), "L2·row_sums[h1, sit]",
     "L2·weights[h1, sit, Cats] + L2·weights[h1, sit, sit] + L2·weights[h1, sit, on]"),
    ("layers.0.attention.weights.max", (0, 0, 1), "L1·weights.max[h0, sit]",
     "max(L1·masked_scores[h0, sit, Cats], L1·masked_scores[h0, sit, sit], L1·masked_scores[h0, sit, on])"),
    ("layers.0.mlp.activation", (0, 2, 4), "L1·mlp.activation[on, f4]", "max(0, L1·mlp.up[on, f4])"),
    ("embedding.output", (0, 1, 3), "embedding.output[sit, c3]", "embedding.weight[sit, c3], ID input_ids[sit]"),
    ("layers.0.attention.q_heads", (0, 1, 2, 0), "L1·q_heads[h1, on, d0]", "L1·q[on, c2]"),
    ("layers.0.attention.merged", (0, 2, 3), "L1·merged[on, c3]", "L1·head_output[h1, on, d1]"),
    ("contributions", (90, 1), "contributions[mats, c1]",
     "final_norm.output[on, c1] × lm_head.weight[mats, c1]"),
    ("rope.angles", (2, 0), "rope.angles[on, p0]", "rope.shifted[on] × rope.frequencies[p0]"),
    ("rope.cosines", (2, 0), "rope.cosines[on, p0]", "cos(rope.angles[on, p0])"),
])
def test_formulas_as_the_article_writes_them(
    name: str, index: tuple[int, ...], title: str, formula: str
) -> None:
    state = reader()
    assert told(state, name, *index)["title"] == title
    assert in_line(told(state, name, *index)["pieces"]) == formula


def test_the_logit_of_mats_from_its_four_contributions() -> None:
    """Article: −0.0031·0.2 + 0.9637·0.4 − 0.0321·0.1 + 1.7522·0.3 = 0.9073."""
    mats = told(reader(), "logits", 0, 2, 90)
    operands = [piece["value"] for piece in mats["pieces"] if "value" in piece]
    assert operands == pytest.approx([-0.0031, 0.2, 0.9637, 0.4, -0.0321, 0.1, 1.7522, 0.3], abs=5e-5)
    assert mats["value"] == pytest.approx(0.9073, abs=5e-5)
    assert mats["numpy"] == 'trace["final_norm.output"].data[0, 2, :] @ trace["lm_head.weight"].data[90, :]'


def test_the_stretched_stream_leads_back_to_the_last_layer() -> None:
    stream = told(reader(), "scaled.stream", 0, 3)
    operands = [(piece["tensor"], piece["index"]) for piece in stream["pieces"] if "tensor" in piece]
    assert operands == [("layers.1.output", [0, 2, 3]), ("scaled.factor", [])]


def test_every_chain_of_operands_ends_at_a_leaf() -> None:
    state = reader()
    frontier, seen = {("scaled.with_norm.probabilities", (0, 90)), ("contributions", (90, 0))}, set[Cell]()
    while frontier:
        name, index = frontier.pop()
        seen.add((name, index))
        operands = [piece for piece in told(state, name, *index)["pieces"] if "tensor" in piece]
        assert operands or state.trace[name].op in LEAVES
        frontier |= {(piece["tensor"], tuple(piece["index"])) for piece in operands} - seen
    ends = {name for name, _ in seen if state.trace[name].op in LEAVES}
    assert {"embedding.weight", "lm_head.weight", "rope.positions", "causal_mask", "norm_epsilon"} <= ends


def test_repeated_tokens_are_told_apart_in_titles() -> None:
    state = reader(text="on sit on")
    assert told(state, "layers.0.attention.scores", 0, 0, 2, 0)["title"] == "L1·scores[h0, 2:on, 0:on]"
    assert told(state, "layers.0.attention.scores", 0, 0, 2, 1)["title"] == "L1·scores[h0, 2:on, sit]"


def test_an_override_shows_both_values() -> None:
    state = reader()
    edit(state, Q, (0, 2, 0), 9.5)
    here = told(state, Q, 0, 2, 0)
    assert (here["value"], here["numpy"]) == (9.5, "9.5")
    assert here["computed"] == pytest.approx(0.2981, abs=5e-5)
    assert worked_out(here["pieces"]) == close(here["computed"])
    assert told(state, Q, 0, 2, 1)["computed"] is None


def test_an_override_with_minus_infinity_is_valid_python() -> None:
    state = reader()
    edit(state, MASKED, (0, 0, 2, 1), "-inf")
    here = told(state, MASKED, 0, 0, 2, 1)
    assert here["value"] == "-inf"
    assert python(here["numpy"], state.trace) == -inf


@pytest.mark.parametrize("value", [0.5, -1e-300, 1e300, inf, -inf])
def test_literals_are_python(value: float) -> None:
    assert eval(literal(value), {"np": np}) == value
    assert np.isnan(eval(literal(math.nan), {"np": np}))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_with_nothing_to_read_is_explained(language: str) -> None:
    """Cats may read only itself; without that, its weights are 0, and neither NaN nor a warning."""
    state = reader(language=language)
    edit(state, MASKED, (0, 0, 0, 0), "-inf")
    assert state.trace[WEIGHTS].data[0, 0, 0].tolist() == [0, 0, 0]
    assert python(told(state, WEIGHTS, 0, 0, 0, 1)["numpy"], state.trace) == 0
    for step in ("max", "sum"):
        assert python(told(state, f"{WEIGHTS}.{step}", 0, 0, 0)["numpy"], state.trace) == 0, step
    assert told(state, WEIGHTS, 0, 0, 0, 1)["words"] == catalogue(language)["explain_empty_row"]
    assert told(state, WEIGHTS, 0, 0, 2, 1)["words"] != catalogue(language)["explain_empty_row"]
    assert told(state, f"{WEIGHTS}.max", 0, 0, 0)["words"] == catalogue(language)["explain_empty_row"]


def test_a_share_of_nothing_is_nothing() -> None:
    state = State(Choices(), [(), (Edit(f"{WEIGHTS}.sum", (), 0.0),)], 1)
    assert python(told(state, WEIGHTS, 0, 0, 2, 1)["numpy"], state.trace) == 0


def test_numbers_that_ran_over_travel_as_words() -> None:
    state = reader()
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    values = {str(told(state, name, *index)["value"]) for name, index in sample(state.trace)}
    assert {"nan", "-inf"} <= values


def test_the_trail_names_the_cells_on_the_way() -> None:
    state = reader()
    send(state, "select", tensor="logits", index=[0, 2, 90], trail="start")
    send(state, "select", tensor="final_norm.output", index=[0, 2, 1], trail="push")
    assert told(state, "final_norm.output", 0, 2, 1)["trail"] == [
        {"title": "logits[on, mats]", "tensor": "logits", "index": [0, 2, 90]},
        {"title": "final_norm.output[on, c1]", "tensor": "final_norm.output", "index": [0, 2, 1]},
    ]


def test_words_with_places_have_them_filled_in() -> None:
    """Which keys the panel fills in; a new place in a catalogue would otherwise show as braces."""
    for language in LANGUAGES:
        places = {
            key: {name for _, name, _, _ in string.Formatter().parse(words) if name}
            for key, words in catalogue(language).items() if key.startswith("explain_")
        }
        assert {key for key in places if places[key]} == {"explain_lookup"}

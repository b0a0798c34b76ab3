"""The explanation panel: its formula and its NumPy line both give the number that they explain."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest

from engine import Cell as Explained
from engine import Edit, TensorMap, explain, gradient, programs, run
from engine.explain import LEAVES
from engine.generation import remember
from engine.operations import OPERATIONS
from tests.ui.support import ARCHITECTURES, Cell, edit, is_chinese, reader, send
from ui import board
from ui.explanation import FEW_OPERANDS, SPECIFIC, explanation, most_operands, words
from ui.formulas import FORMULAS, pieces
from ui.numpy_lines import NUMPY, literal, numpy_line
from ui.operands import COPIES
from ui.state import Choices, State
from ui.text import LANGUAGES, catalogue
from ui.view import vocabulary_rows

CELLS_PER_TENSOR = 12
LONG_AXIS = 32
Q, WQ = "layers.0.attention.q", "layers.0.attention.Wq"
MASKED, WEIGHTS = "layers.0.attention.masked_scores", "layers.0.attention.weights"

# what the signs of a formula mean, in Python
SIGNS = str.maketrans({
    "×": "*", "÷": "/", "−": "-", "²": "**2", "³": "**3", "^": "**", "√": "sqrt", "π": "pi", "≥": ">=",
})
FUNCTIONS = {
    "sqrt": math.sqrt, "exp": math.exp, "cos": math.cos, "sin": math.sin, "tanh": math.tanh, "erf": math.erf,
    "pi": math.pi, "max": lambda *values: max(values),
    "random": lambda seed, number: np.random.default_rng(int(seed)).random(number + 1)[number],
    "normal": lambda seed, number: np.random.default_rng([*map(int, seed)]).standard_normal(number + 1)[number],
    "std": lambda *values: np.std(values), "ln": math.log, "min": lambda *values: min(values),
    "entropy": lambda *shares: -sum(share * math.log(share) for share in shares if share > 0),
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
    "cats, repeated": reader(text="on sit on 0"), "today": reader(preset="today"),
    "scratch": reader(preset="scratch"),
    "scratch, half": reader(preset="scratch", pairing="half"), "scratch, edited": edited(preset="scratch"),
}
EVERY_READER = pytest.mark.parametrize("state", READERS.values(), ids=READERS.keys())


def sample(trace: TensorMap) -> Iterator[Cell]:
    """Cells from all over every tensor, the first and the last among them."""
    for name, tensor in trace.items():
        size = math.prod(tensor.shape)
        for flat in sorted({*np.linspace(0, size - 1, CELLS_PER_TENSOR).astype(int).tolist()}):
            yield name, tuple(int(part) for part in np.unravel_index(flat, tensor.shape))


def every_cell(state: State) -> Iterator[Cell]:
    """Every cell of every tensor; of a large vocabulary the rows that a board shows."""
    view = board.view(state)
    rows = [*{*vocabulary_rows(view, embedding=True), *vocabulary_rows(view, embedding=False)}]
    for name, tensor in state.trace.items():
        places = [
            rows if axis == "vocabulary" and size > LONG_AXIS else range(size)
            for axis, size in zip(tensor.axes, tensor.shape, strict=True)
        ]
        yield from ((name, index) for index in product(*places))


def python(line: str, trace: TensorMap) -> float:
    return float(eval(line, {"trace": trace, "np": np, "math": math}))


def worked_out(pieces: list[dict[str, Any]]) -> float:
    """The value of a formula as it is displayed, from its operands at full precision."""
    texts = [piece.get("text") for piece in pieces]
    # a cell of a table is followed by the id that led to its row
    counted = pieces[:texts.index(", ID ")] if ", ID " in texts else pieces
    words = [
        piece["text"].translate(SIGNS) if "text" in piece else f"({float(piece['value'])!r})"
        for piece in counted
    ]
    # behind dots stands what the operands come to that are too many to list
    line = re.sub(r"sqrt(\d+)", r"sqrt(\1)", "".join(words)).replace("inf", "INF")
    line = line.replace("(… ", "(").replace(", …", "")
    return float(eval(line, {"__builtins__": {}, "INF": inf, **FUNCTIONS}))


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-14)


def nearly(state: State, value: float) -> Any:
    """Close; where a sum over a large vocabulary is cut short, to the digits that stand for what is left out."""
    return pytest.approx(value, rel=1e-7, abs=1e-14) if state.choices.preset == "today" else close(value)


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
            assert worked_out(told["pieces"]) == nearly(state, float(value)), (name, index)
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
        cell = explain(state.trace, name, index, most=most_operands(state.trace[name], index))
        cell = cell.computed or cell
        shown = explanation(state, name, index)["pieces"]
        operands = {(piece["tensor"], *piece["index"]) for piece in shown if "tensor" in piece}
        named = {(term.name, *term.index) for term in cell.terms if term.name is not None}
        if cell.op in LEAVES:
            assert not operands
        elif cell.omitted or len(named) < len(cell.terms):
            assert operands
        else:
            assert operands == named, (name, index)


def test_no_spread_has_no_skewness() -> None:
    state = reader("layernorm")
    for place in range(4):
        edit(state, "layernorm.own.x", (place,), 2.0)
    told = explanation(state, "layernorm.own.before.skewness", ())
    assert (told["value"], told["words"]) == (0, catalogue("en")["explain_skewness_undefined"])


WHOLE = {"input_ids", "rope.positions", "rope.offset"}


@EVERY_READER
def test_copies_show_where_they_come_from_and_ids_are_whole(state: State) -> None:
    for name, index in sample(state.trace):
        cell = explain(state.trace, name, index, most=FEW_OPERANDS)
        copied = (cell.computed or cell).op in COPIES
        here = explanation(state, name, index)
        assert here["integer"] == (name in WHOLE)
        for piece in here["pieces"]:
            if "text" in piece:
                assert set(piece) == {"text"}
            else:
                whole = piece["tensor"] in WHOLE
                assert piece["show"] == ("integer" if whole else "label" if copied else "number"), (name, index)


@EVERY_READER
def test_a_looked_up_cell_names_the_row_that_its_id_says(state: State) -> None:
    for position, token in enumerate(state.ids):
        cell, between, number = explanation(state, "embedding.output", (0, position, 1))["pieces"]
        assert (cell["tensor"], cell["index"], cell["show"]) == ("embedding.weight", [token, 1], "label")
        assert between == {"text": ", ID "}
        assert (number["tensor"], number["index"], number["show"]) == ("input_ids", [0, position], "integer")
        assert number["value"] == token


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operation_has_a_formula_a_line_and_words(language: str) -> None:
    assert set(OPERATIONS) == set(FORMULAS) == set(NUMPY)
    own = {"rotate": {"rotate_interleaved", "rotate_half"}}
    meant = {meaning for name in {*OPERATIONS, *LEAVES} for meaning in own.get(name, {name})}
    assert {f"explain_{meaning}" for meaning in meant | {*SPECIFIC.values()}} <= set(catalogue(language))


def check(state: State, name: str, index: tuple[int, ...]) -> None:
    """Formula, NumPy line and words of one cell."""
    told = explanation(state, name, index)
    value = state.trace[name].number(index)
    assert python(told["numpy"], state.trace) == close(value), (name, index, told["numpy"])
    if told["pieces"]:
        assert worked_out(told["pieces"]) == nearly(state, value), (name, index)
    assert not {"{", "}"} & set(told["words"])
    assert is_chinese(told["words"]) == (state.choices.language == "zh"), (name, told["words"])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_every_cell_of_every_architecture(switches: dict[str, Any], language: str) -> None:
    """Formula, line and words, cell by cell; a formula cut short only over a vocabulary."""
    state = reader(language=language, switches=tuple(switches.items()))
    for name, index in every_cell(state):
        check(state, name, index)


@pytest.mark.parametrize("switches", [{}, {
    "norm": "rmsnorm", "norm_placement": "post", "positions": "rope", "tied_head": False, "qk_norm": True,
    "activation": "relu_squared",
}], ids=["own", "switched"])
def test_every_cell_of_today(switches: dict[str, Any]) -> None:
    state = reader(language="zh", preset="today", text="天真", switches=tuple(switches.items()))
    for name, index in every_cell(state):
        check(state, name, index)


@pytest.mark.parametrize("switches", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_gradients_explain_themselves_too(switches: dict[str, Any]) -> None:
    """The same table of operations, and more of it."""
    state = reader(preset="scratch", language="zh", switches=tuple(switches.items()))
    last = len(state.ids) - 1
    gradients = gradient(state.trace, "probabilities", (0, last, 2))
    known = TensorMap(gradients.recording, gradients.recording.plan.names)
    for name, index in sample(gradients):
        cell = explain(gradients, name, index)
        assert_explains(state, cell, known)


def assert_explains(state: State, cell: Explained, known: TensorMap) -> None:
    line, formula = numpy_line(cell), pieces(state, cell)
    assert python(line, known) == close(cell.value), (cell.tensor, cell.index, line)
    assert not formula or worked_out(formula) == close(cell.value), (cell.tensor, cell.index, in_line(formula))
    assert is_chinese(words(state, cell))


def test_dropout_and_the_cache_explain_themselves() -> None:
    """What only training and generation have."""
    state = reader(preset="today", language="zh")
    trained = run(state.model, [list(state.ids)], training=True, seed=3)
    cached = run(state.model, [[state.ids[-1]]], past=remember(run(state.model, [list(state.ids[:-1])])))
    for trace, ends in ((trained, ("dropout_mask", "dropped")), (cached, ("k_cache", "v_cache", "k_all", "v_all"))):
        found = [name for name in trace if name.endswith(ends)]
        assert {name.rpartition(".")[2] for name in found} == {*ends}
        for name in found:
            for index in np.ndindex(*trace[name].shape):
                assert_explains(state, explain(trace, name, index), trace)


def test_a_sum_over_a_large_vocabulary_lists_a_few_and_counts_the_rest() -> None:
    state = reader(preset="today")
    for step in ("sum", "max"):
        here = explanation(state, f"probabilities.{step}", (0, 4))
        operands = [piece for piece in here["pieces"] if "tensor" in piece]
        assert [piece["index"] for piece in operands] == [[0, 4, token] for token in range(FEW_OPERANDS)]
        assert "(… " in here["pieces"][-1]["text"]
        assert str(50257 - FEW_OPERANDS) in here["words"]
        assert python(here["numpy"], state.trace) == close(here["value"])
        assert worked_out(here["pieces"]) == nearly(state, here["value"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cell_has_words(language: str) -> None:
    for state in (reader(language=language), reader(language=language, preset="scratch", pairing="half")):
        for name, index in sample(state.trace):
            words = explanation(state, name, index)["words"]
            assert words.strip()
            assert not {"{", "}"} & set(words)
            assert is_chinese(words) == (language == "zh"), (name, words)


def test_specific_words_are_of_steps_that_exist() -> None:
    steps = {("multiply", "dropped")}  # in training only
    readers = [reader(switches=tuple(switches.items())) for switches in ARCHITECTURES.values()]
    # without norms of the model the lesson brings weights of its own
    readers.append(reader("layernorm", switches=(("norm", "none"),)))
    readers += [reader("wrote", switches=tuple(ARCHITECTURES[name].items())) for name in ("GPT-2", "no norm")]
    for state in (*readers, *(reader(lesson) for lesson in programs.OWN)):
        for name, tensor in state.trace.items():
            parts = str(tensor.name or name).split(".")
            steps |= {(tensor.op, ".".join(parts[start:])) for start in range(len(parts))}
    assert steps >= set(SPECIFIC)


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
            for key, words in catalogue(language).items() if key.startswith(("explain_", "gradient_w"))
        }
        assert {key: names for key, names in places.items() if names} == {
            **{f"explain_ids_target{end}": {"token"} for end in ("", "_chosen", "_behind")},
            "explain_lookup": {"id"}, "explain_rows": {"row"}, "explain_rows_position": {"row"},
            "explain_override_carried": {"text"}, "explain_leader": {"count"}, "explain_rank": {"above", "count"},
            "explain_soft_cap": {"cap"}, "explain_omitted": {"shown", "rest"},
            "explain_order": {"rank", "count"}, "explain_sum_from": {"first"}, "explain_draw": {"u", "rank"},
            "explain_count": {"draws", "times"},
            "gradient_words": {"name", "goal"}, "gradient_way_start": {"goal"},
            "gradient_way_one": {"name", "consumers"}, "gradient_way_many": {"name"},
            **{f"explain_keep_top_k_{end}": {"rank", "k"} for end in ("kept", "cut")},
            **{f"explain_keep_top_p_{end}": {"mass", "p"} for end in ("kept", "cut")},
        }


def test_powers_that_run_over_are_infinite() -> None:
    """Python's own raise where NumPy's run over."""
    state = reader("layernorm", preset="scratch")
    (name,) = [name for name in state.trace if state.trace[name].op == "mean_cube"][:1]
    source = state.trace[name].inputs[0]
    edit(state, str(source.name), (0,) * len(source.shape), 1e200)
    told = explanation(state, name, (0,) * len(state.trace[name].shape))
    assert any("³" in piece.get("text", "") for piece in told["pieces"])

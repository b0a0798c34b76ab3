"""What the explanation panel says about a cell: its formula, a sentence, a NumPy line, and the way there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from engine import Carried, Cell, Edit, Mean, Tensor, explain
from engine.edits import Given, covers
from engine.operands import term_count
from engine.programs.heads import BY_QUERY, MARKS
from engine.types import Index
from ui import dataset, gradients, naming, ranking_words
from ui.formulas import pieces
from ui.numpy_lines import literal, numpy_line
from ui.operands import finite, is_empty_row
from ui.state import State
from ui.text import joined

# operands of a sum that are all listed; of a longer one only the first few
MOST_OPERANDS = 256
FEW_OPERANDS = 24


def explanation(state: State, name: str, index: Index) -> dict[str, Any]:
    """What the panel shows for one cell of the current trace."""
    tensor = state.trace[name]
    cell = explain(state.trace, name, index, most=most_operands(tensor, index))
    shown = cell.computed or cell
    check = gradients.checked(state.trace, name, index)
    said = [words(state, cell), gradients.doubts(state, check)]
    return {
        "title": naming.cell_title(state.model, state.ids, cell.tensor, name, index),
        "value": finite(cell.value), "integer": naming.is_whole(name),
        "pieces": pieces(state, shown),
        "words": joined(state.choices.language, list(filter(None, said))),
        "facts": gradients.facts(state, cell.tensor, index, check),
        "numpy": literal(cell.value) if cell.computed else numpy_line(cell),
        "trail": [
            {"title": naming.cell_title(state.model, state.ids, state.trace[step], step, place),
             "tensor": step, "index": list(place)}
            for step, place in state.trail
        ],
        "computed": None if cell.computed is None else finite(cell.computed.value),
    }


def most_operands(tensor: Tensor, index: Index) -> int | None:
    """How many operands of each input are listed; None for all. A sum over a vocabulary has tens of thousands."""
    return FEW_OPERANDS if term_count(tensor.node, index) > MOST_OPERANDS else None


def words(state: State, cell: Cell) -> str:
    """A sentence on what the operation does, or on what kind of leaf this is."""
    if cell.op == "override":
        value, tokenizer = _set_to(state, cell), state.model.tokenizer
        text = tokenizer.decode(list(value.ids)) if isinstance(value, Carried) and tokenizer else ""
        return state.say(f"explain_{_origin(cell, value)}", text=text)
    said = _said(state, cell)
    if not cell.omitted or cell.op in ranking_words.PICKS:
        return said
    omitted = state.say("explain_omitted", shown=FEW_OPERANDS, rest=cell.omitted)
    return joined(state.choices.language, [said, omitted])


def _said(state: State, cell: Cell) -> str:
    if naming.differentiated(cell.tensor.node.name or "") is not None:
        return gradients.words(state, cell)
    meaning = "empty_row" if is_empty_row(cell) else _meaning(state, cell)
    return state.say(f"explain_{meaning}", **_details(state, cell))


def _set_to(state: State, cell: Cell) -> Given | None:
    """What an edit has set a cell to; a later edit wins where two meet."""
    return next((edit.value for edit in reversed(state.edits) if _sets(state, edit, cell)), None)


def _origin(cell: Cell, value: Given | None) -> str:
    """Where the value comes from, as the end of a catalogue key."""
    if isinstance(value, Mean):
        return "override_mean_read" if {"query", "key"} <= {*cell.tensor.axes} else "override_mean"
    return "override_carried" if isinstance(value, Carried) else "override"


def _sets(state: State, edit: Edit, cell: Cell) -> bool:
    return (
        edit.name in state.trace and state.trace[edit.name].slot == cell.tensor.slot
        and covers(edit, cell.index, cell.tensor.shape)
    )


def _meaning(state: State, cell: Cell) -> str:
    """What the operation means in this tensor, as the end of a catalogue key."""
    parts = (cell.tensor.node.name or "").split(".")
    tails = (".".join(parts[start:]) for start in range(len(parts)))
    usual = ranking_words.meaning(cell)
    meaning = next((SPECIFIC[cell.op, tail] for tail in tails if (cell.op, tail) in SPECIFIC), usual)
    match meaning:
        case "rotate":
            return f"rotate_{cell.tensor.node.attributes['pairing']}"
        case "copy" if str(cell.terms[0].name).endswith(BRANCHES):
            return "copy_branch"
        case "divide_normalized" if str(cell.terms[-1].name).endswith("std"):
            return "divide_standardized"
        case "skewness" if cell.terms[-1].value == 0:
            return "skewness_undefined"
        case "constant_frequencies" if cell.value < 0:
            return "constant_frequencies_minus"
        case "ids_target" if cell.index[-1] == len(state.ids) - 1:
            return "ids_target_behind" if state.lesson == dataset.LESSON else "ids_target_chosen"
        case "parameter_embedding" if state.model.config.tied_head:
            return "parameter_tied"
    return meaning


def _details(state: State, cell: Cell) -> dict[str, object]:
    """What the sentence of an operation names beside its operands."""
    match cell.op:
        case "ids":
            return {"token": naming.token_label(state.model, int(cell.value))}
        case "lookup":
            return {"id": int(cell.terms[-1].value)}
        case "rows":
            return {"row": cell.terms[0].index[0]}
        case "soft_cap":
            return {"cap": f"{cell.tensor.node.attributes['cap']:g}"}
    return ranking_words.details(cell)


# what the branches of a layer make; with residuals off the stream is a copy of it
BRANCHES = ("attention.output", "mlp.output", "dropped")
_BIASES = ("bq", "bk", "bv", "bo", "b_up", "b_down")
_NORMS = ("norm1", "norm2", "final_norm")
# what the lessons on the logit lens and on the split of a logit compute
_PARTS = ("embedding", "heads", "mlp", "sources", "sources_by_hand")
_SPLIT = (
    "head_row", "weighted", "weighted_mean", "direction", *_PARTS, "positions", "bo", "b_down", "norm_bias", "by_hand",
    "sum", "logit", "rest", "through_Wo", "through_W_down", "offered", "sources_sum", "sources_rest",
)
_INSIDE: Mapping[tuple[str, str], str] = MappingProxyType({
    ("subtract", "lens.climb"): "subtract_climb",
    **{("take", f"{stage}.token_probability"): "take_token" for stage in ("lens", "lens.embedding")},
    **{(operation, f"wrote.{side}.{name}"): meaning for side in ("token", "rival") for operation, name, meaning in (
        ("take", "head_row", "take_head_row"), ("take", "logit", "take_token"),
        ("multiply", "direction", "multiply_direction"), ("multiply", "weighted", "multiply_direction"),
        ("subtract", "direction", "subtract_direction"), ("copy", "direction", "copy_direction"),
        ("contract", "through_Wo", "contract_through"), ("contract", "through_W_down", "contract_through"),
        ("sum", "offered", "sum_offered"), ("total", "by_hand", "total_by_hand"),
        ("difference", "rest", "difference_rest"), ("difference", "sources_rest", "difference_rest"),
        *(("divide", part, "divide_part") for part in _PARTS),
    )},
    **{("subtract", f"wrote.gap.{name}"): "subtract_gap" for name in _SPLIT},
    ("total", "wrote.by_hand"): "total_by_hand",
    ("constant", "heads.share_of_readers"): "constant_readers", ("contract", "received"): "contract_received",
    ("constant", "heads.share_of_queries"): "constant_queries", ("exp", "effective"): "exp_effective",
    **{key: meaning for mark in MARKS for key, meaning in (
        (("constant", f"heads.{mark}.mark"), "constant_mark"), (("contract", mark), "contract_marked"),
    )},
    **{("contract", f"mean_{name}"): "contract_mean" for name in BY_QUERY},
    **{("take", f"raise_logit.{side}_logit"): "take_token" for side in ("token", "rival")},
    ("constant", "raise_logit.against"): "constant_against", ("subtract", "raise_logit.goal"): "subtract_goal",
    ("copy", "system.prompt"): "copy_prompt", ("concatenate", "system.text"): "concatenate_text",
})
# (operation, end of the tensor's name) → the end of the key, where it means something of its own there
SPECIFIC: Mapping[tuple[str, str], str] = MappingProxyType({
    ("ids", "targets"): "ids_target",
    ("constant", "causal_mask"): "constant_causal_mask", ("constant", "norm_epsilon"): "constant_norm_epsilon",
    ("constant", "sqrt_head_size"): "constant_sqrt_head_size", ("constant", "rope.positions"): "constant_positions",
    ("constant", "rope.offset"): "constant_offset", ("constant", "rope.frequencies"): "constant_frequencies",
    ("parameter", "embedding.weight"): "parameter_embedding",
    ("parameter", "position_embedding.weight"): "parameter_position",
    ("parameter", "lm_head.weight"): "parameter_lm_head",
    **{("parameter", f"{norm}.weight"): "parameter_norm_weight" for norm in _NORMS},
    **{("parameter", f"{norm}.bias"): "parameter_norm_bias" for norm in _NORMS},
    **{("parameter", bias): "parameter_bias" for bias in _BIASES},
    ("rows", "position_embedding.output"): "rows_position", ("add", "embedding.sum"): "add_embedding",
    ("mean", "mean"): "mean_mean", ("subtract", "centered"): "subtract_centered",
    ("mean_square", "variance"): "mean_square_variance", ("root", "std"): "root_std",
    ("divide", "normalized"): "divide_normalized", ("multiply", "output"): "multiply_output",
    ("divide", "q_norm.output"): "divide_qk_norm", ("divide", "k_norm.output"): "divide_qk_norm",
    ("multiply", "rope.angles"): "multiply_angles",
    ("contract", "dot"): "contract_dot", ("divide", "scores"): "divide_scores",
    ("add", "masked_scores"): "add_masked_scores", ("subtract", "shifted"): "subtract_shifted",
    ("contract", "head_output"): "contract_head_output", ("multiply", "dropped"): "multiply_dropped",
    ("add", "residual1"): "add_residual1", ("add", "residual2"): "add_residual2", ("add", "output"): "add_output",
    ("copy", "mlp.activation"): "copy_activation", ("multiply", "contributions"): "multiply_contributions",
    ("contract", "logits"): "contract_logits", ("contract", "logits.uncapped"): "contract_logits",
    ("add", "gradient"): "add_gradient", ("contract", "gradient"): "contract_gradient",
    ("contract", "through"): "contract_gradient", ("multiply", "gradient_h"): "multiply_gradient_h",
    ("divide", "by_size.scores"): "divide_by_size", ("subtract", "slopes"): "subtract_slopes",
    ("matmul", "W_up_down"): "matmul_up_down", ("constant", "why_sqrt.seed"): "constant_seed",
    ("constant", "position_embedding.weight"): "constant_position_table", ("rows", "learned.rows"): "rows_position",
    ("rows", "later.rows"): "rows_position", ("add", "learned.stream"): "add_embedding",
    ("add", "later.stream"): "add_embedding",
    ("constant", "layernorm.stretch"): "constant_stretch", ("constant", "layernorm.shift"): "constant_shift",
    ("constant", "gelu.table.printed"): "constant_printed", ("scale", "relu_squared_slope"): "scale_relu_slope",
    ("sum", "reach"): "sum_reach", ("sum", "relu_slopes"): "sum_passes", ("sum", "gelu_slopes"): "sum_slopes",
    ("multiply", "relu_gradient"): "multiply_unit_gradient", ("multiply", "gelu_gradient"): "multiply_unit_gradient",
    ("positive", "alive"): "positive_alive", ("sum", "living"): "sum_living", ("subtract", "dead"): "subtract_dead",
    ("constant", "gelu.own.x"): "constant_own_x", ("constant", "steps.cubic"): "constant_cubic",
    ("constant", "steps.root"): "constant_root",
    ("constant", "dropout.p"): "constant_p", ("constant", "dropout.seed"): "constant_seed",
    ("subtract", "share_kept"): "subtract_share_kept", ("divide", "mask"): "divide_mask",
    ("mean", "mean_mask"): "mean_masks",
    **{("constant", f"choosing.{name}"): f"constant_{name}" for name in ("temperature", "top_k", "top_p")},
    ("constant", "choosing.seed"): "constant_draw_seed", ("take", "choosing.largest"): "take_largest",
    **{("constant", f"linear.{name}"): "constant_own_numbers" for name in ("a", "b", "layers.x")},
    ("constant", "linear.k"): "constant_test_factor",
    **{("constant", f"linear.{name}"): "constant_own_matrix" for name in ("W", "layers.W1", "layers.W2", "layers.W3")},
    **{("constant", f"linear.{name}"): "constant_own_bias" for name in ("bias", "layers.b1", "layers.b2", "layers.b3")},
    **{("constant", f"linear.layers.{name}"): f"constant_switch_{name}" for name in ("relu", "gelu")},
    **{("add", f"{place}.{name}_output"): f"add_switch_{name}"
       for place in ("after1", "after2") for name in ("relu", "gelu")},
    ("constant", "attention_linear.factor"): "constant_test_factor",
    ("constant", "layernorm.own.x"): "constant_own_numbers", ("constant", "layernorm.weight"): "constant_no_weight",
    ("constant", "layernorm.bias"): "constant_no_bias",
    **{("mean", f"{place}.mean"): "mean" for place in ("before", "after")},
    ("mean", "own.layer_norm.mean"): "mean_own", ("subtract", "own.layer_norm.centered"): "subtract_centered_own",
    **{("mean_square", f"{place}.variance"): "mean_square_variance_own"
       for place in ("before", "after", "own.layer_norm")},
    ("root", "own.layer_norm.std"): "root_std_own", ("divide", "own.layer_norm.normalized"): "divide_std_own",
    ("mean_square", "own.rms_norm.mean_square"): "mean_square_own",
    ("divide", "own.rms_norm.normalized"): "divide_rms_own",
    ("constant", "block.scores"): "constant_printed_score", ("constant", "block.printed_weights"): "constant_printed",
    ("constant", "why_residuals.input"): "constant_own_numbers", ("constant", "why_residuals.gain"): "constant_gain",
    ("constant", "why_residuals.direction"): "constant_direction", ("constant", "W_drawn"): "constant_drawn",
    ("constant", "gelu.table.x"): "constant_own_x", ("constant", "softmax_demo.small"): "constant_own_numbers",
    ("constant", "softmax_demo.factor"): "constant_test_factor", ("constant", "scaled.factor"): "constant_test_factor",
    ("sum", "choosing.kept_mass"): "sum_kept_mass", ("share", "choosing.probabilities"): "share_kept",
    ("multiply", "mean_dropped"): "multiply_mean_dropped", ("add", "h_final"): "add_h_final",
    **_INSIDE,
})

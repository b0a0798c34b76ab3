"""Lesson 7: scores, mask, softmax; how much each position reads of each earlier one."""

from ui import lesson
from ui.layout import Switch, grid, op, section

lesson.show(
    "scores",
    section(
        "section_match", grid("layers.{layer}.attention.q_rotated"), op("sign_transposed"),
        grid("layers.{layer}.attention.k_rotated"), op("="), grid("layers.{layer}.attention.dot"), op("÷"),
        grid("sqrt_head_size"),
        Switch(grid("sqrt_head_size"), "switch_scale", 1.0),
        op("="), grid("layers.{layer}.attention.scores"), note="note_rows_columns",
    ),
    section(
        "section_mask", grid("layers.{layer}.attention.scores"), op("+"), grid("causal_mask"), op("="),
        grid("layers.{layer}.attention.masked_scores"),
    ),
    section(
        "section_softmax", grid("layers.{layer}.attention.masked_scores"), op("−"),
        grid("layers.{layer}.attention.weights.max"), op("="),
        grid("layers.{layer}.attention.weights.shifted"), op("exp"),
        grid("layers.{layer}.attention.weights.exp"), op("÷"), grid("layers.{layer}.attention.weights.sum"),
        op("="), grid("layers.{layer}.attention.weights"), op("sign_row_sums"),
        grid("layers.{layer}.attention.row_sums"), note="note_softmax",
    ),
    section(
        "section_edit", grid("layers.{layer}.attention.Wq"), grid("layers.{layer}.attention.Wk"),
        note="note_edit",
    ),
    section(
        "section_scale", grid("softmax_demo.small"), op("softmax"), grid("softmax_demo.small_weights"),
        note="note_scale",
    ),
    section(
        None, grid("softmax_demo.small"), op("×"), grid("softmax_demo.factor"), op("="),
        grid("softmax_demo.large"), op("softmax"), grid("softmax_demo.large_weights"),
    ),
)

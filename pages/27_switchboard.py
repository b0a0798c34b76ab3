"""Lesson 27, a lab: the switchboard; every choice of architecture, and what it changes."""

from ui import lesson, switchboard
from ui.layout import ATTENTION_INPUT, KEY, MASKED_SCORES, QUERY, grid, op, optional, section

LAYER = "layers.{layer}"

lesson.show(
    "switchboard",
    section(
        "section_switched_input", grid(ATTENTION_INPUT), op("sign_q_and_k"), grid(QUERY), grid(KEY),
        note="note_switched_board",
    ),
    section(
        "section_switched_weights", grid(MASKED_SCORES), op("softmax"), grid(f"{LAYER}.attention.weights"),
    ),
    section(
        "section_switched_first",
        optional(grid("{input}", title="stream_in"), op("+"), residual=True), grid(f"{LAYER}.attention.output"),
        optional(op("="), grid(f"{LAYER}.residual1"), residual=True),
        optional(op("sign_norm"), grid(f"{LAYER}.norm1.output"), norm_placement="post"),
    ),
    section(
        "section_switched_second", grid("{mlp_input}"), optional(op("@ W_up + b_up ="), bias=True),
        optional(op("@ W_up ="), bias=False), grid(f"{LAYER}.mlp.up", position="last"), op("{activation}"),
        grid(f"{LAYER}.mlp.activation", position="last"), optional(op("@ W_down + b_down ="), bias=True),
        optional(op("@ W_down ="), bias=False), grid(f"{LAYER}.mlp.output"),
        optional(op("+"), grid("{middle}"), op("="), grid(f"{LAYER}.residual2 | {LAYER}.output"), residual=True),
        optional(op("sign_norm"), grid(f"{LAYER}.norm2.output"), norm_placement="post"),
        note="note_switched_second",
    ),
    section(
        "section_switched_prediction", grid("final_norm.output | layers.{last}.output", position="last"),
        op("sign_head"), optional(grid("logits.uncapped", position="last"), op("sign_cap")),
        grid("logits", position="last"), op("softmax"), grid("probabilities", position="last"),
    ),
    panel=switchboard.panel,
    report=switchboard.report,
)

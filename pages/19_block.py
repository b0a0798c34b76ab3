"""Lesson 19: the whole GPT-2 block, step by step in the article's order, beside the block of *Cats sit on*."""

from ui import lesson
from ui.layout import MASKED_SCORES, SCORES, Comparison, grid, op, optional, section

LAYER = "layers.{layer}"
ATTENTION, MLP = f"{LAYER}.attention", f"{LAYER}.mlp"

lesson.show(
    "block",
    section("section_block_pictures", Comparison("block"), note="note_block_pictures"),
    # input preparation
    section(
        "section_block_lookup", grid("input_ids", columns="position"), op("sign_selects"), grid("embedding.weight"),
        op("="), grid("embedding.output"), note="note_block_lookup",
    ),
    section(
        "section_block_positions",
        optional(op("+"), grid("position_embedding.output"), op("="), grid("embedding.sum")),
        note="note_block_positions",
    ),
    # core computation: gather context
    section(
        "section_block_norm1",
        optional(
            grid("{input}", title="stream_in"), op("sign_norm"), grid(f"{LAYER}.norm1.output"), norm_placement="pre",
        ),
        note="note_block_norm1",
    ),
    section(
        "section_block_qkv",
        optional(op("@ Wq + bq ="), bias=True), optional(op("@ Wq ="), bias=False), grid(f"{ATTENTION}.q"),
        optional(op("@ Wk + bk ="), bias=True), optional(op("@ Wk ="), bias=False), grid(f"{ATTENTION}.k"),
        optional(op("@ Wv + bv ="), bias=True), optional(op("@ Wv ="), bias=False), grid(f"{ATTENTION}.v"),
        note="note_block_qkv",
    ),
    section(
        "section_block_turn",
        optional(grid(f"{ATTENTION}.q_heads"), op("sign_turn"), grid(f"{ATTENTION}.q_rotated")),
        optional(grid(f"{ATTENTION}.k_heads"), op("sign_turn"), grid(f"{ATTENTION}.k_rotated")),
        note="note_block_turn",
    ),
    section(
        "section_block_qk_norm",
        optional(grid(f"{ATTENTION}.q_norm.output"), grid(f"{ATTENTION}.k_norm.output")),
    ),
    section(
        "section_block_scores", op("q · kᵀ ="), grid(f"{ATTENTION}.dot"),
        optional(op("÷"), grid("sqrt_head_size"), op("="), grid(f"{ATTENTION}.scores")), note="note_block_scores",
    ),
    section(
        "section_block_mask",
        optional(grid(SCORES), op("+"), grid("causal_mask"), op("="), grid(f"{ATTENTION}.masked_scores")),
        note="note_block_mask",
    ),
    section(
        "section_block_softmax", grid(MASKED_SCORES), op("softmax"), grid(f"{ATTENTION}.weights"),
        note="note_block_softmax",
    ),
    section(
        "section_block_printed", grid("block.scores"), op("softmax"), grid("block.weights"), op("sign_printed"),
        grid("block.printed_weights"), op("sign_off_by"), grid("block.difference", title="title_block_difference"),
        note="note_block_printed",
    ),
    section(
        "section_block_context", grid(f"{ATTENTION}.weights"), op("@"), grid(f"{ATTENTION}.v_heads"), op("="),
        grid(f"{ATTENTION}.head_output"), note="note_block_context",
    ),
    section(
        "section_block_projection",
        optional(op("sign_wo_bias"), bias=True), optional(op("sign_wo"), bias=False), grid(f"{ATTENTION}.output"),
        note="note_block_projection",
    ),
    # keep information, the first time
    section(
        "section_block_residual1",
        optional(
            grid("{input}", title="stream_in"), op("+"), grid(f"{ATTENTION}.output"), op("="),
            grid(f"{LAYER}.residual1"), residual=True,
        ),
        note="note_block_residual1",
    ),
    section(
        "section_block_norm1_after", optional(op("sign_norm"), grid(f"{LAYER}.norm1.output"), norm_placement="post"),
    ),
    # core computation: extract features
    section(
        "section_block_norm2",
        optional(op("sign_norm_of_r"), grid(f"{LAYER}.norm2.output"), norm_placement="pre"), note="note_block_norm2",
    ),
    section(
        "section_block_up", grid("{mlp_input}", position="last"), optional(op("@ W_up + b_up ="), bias=True),
        optional(op("@ W_up ="), bias=False), grid(f"{MLP}.up", position="last"), note="note_block_up",
    ),
    section(
        "section_block_activation", op("{activation}"), grid(f"{MLP}.activation", position="last"),
        note="note_block_activation",
    ),
    section(
        "section_block_down", optional(op("@ W_down + b_down ="), bias=True), optional(op("@ W_down ="), bias=False),
        grid(f"{MLP}.output", position="last"), note="note_block_down",
    ),
    # keep information, the second time
    section(
        "section_block_residual2",
        optional(
            grid("{middle}"), op("+"), grid(f"{MLP}.output"), op("="),
            grid(f"{LAYER}.residual2 | {LAYER}.output"), residual=True,
        ),
        note="note_block_residual2",
    ),
    section(
        "section_block_norm2_after", optional(op("sign_norm"), grid(f"{LAYER}.norm2.output"), norm_placement="post"),
    ),
    # output prediction
    section(
        "section_block_final_norm",
        optional(
            grid("layers.{last}.output", position="last"), op("sign_norm"), grid("final_norm.output", position="last"),
        ),
        note="note_block_final_norm",
    ),
    section(
        "section_block_head", op("sign_rows"), optional(grid("logits.uncapped", position="last"), op("sign_cap")),
        grid("logits", position="last"), op("softmax"), grid("probabilities", position="last"),
        note="note_block_head",
    ),
)

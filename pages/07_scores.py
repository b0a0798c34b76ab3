"""Lesson 7: scores, mask, softmax; how much each position reads of each earlier one."""

from ui import lesson
from ui.layout import KEY, MASKED_SCORES, QUERY, SCORES, Switch, grid, op, optional, section

ATTENTION = "layers.{layer}.attention"

lesson.show(
    "scores",
    section(
        "section_qk_norm",
        optional(
            grid(f"{ATTENTION}.q_rotated | {ATTENTION}.q_heads"), op("÷"), grid(f"{ATTENTION}.q_norm.rms"), op("="),
            grid(f"{ATTENTION}.q_norm.output"),
        ),
        note="note_qk_norm",
    ),
    section(
        None,
        optional(
            grid(f"{ATTENTION}.k_rotated | {ATTENTION}.k_heads"), op("÷"), grid(f"{ATTENTION}.k_norm.rms"), op("="),
            grid(f"{ATTENTION}.k_norm.output"),
        ),
    ),
    section(
        "section_match", grid(QUERY), op("sign_transposed"), grid(KEY), op("="), grid(f"{ATTENTION}.dot"),
        optional(
            op("÷"), grid("sqrt_head_size"), Switch(grid("sqrt_head_size"), "switch_scale", 1.0), op("="),
            grid(f"{ATTENTION}.scores"),
        ),
        note="note_rows_columns",
    ),
    section(
        "section_mask",
        optional(grid(SCORES), op("+"), grid("causal_mask"), op("="), grid(f"{ATTENTION}.masked_scores")),
    ),
    section(
        "section_softmax", grid(MASKED_SCORES), op("−"), grid(f"{ATTENTION}.weights.max"), op("="),
        grid(f"{ATTENTION}.weights.shifted"), op("exp"), grid(f"{ATTENTION}.weights.exp"), op("÷"),
        grid(f"{ATTENTION}.weights.sum"), op("="), grid(f"{ATTENTION}.weights"), op("sign_row_sums"),
        grid(f"{ATTENTION}.row_sums"), note="note_softmax",
    ),
    section("section_edit", grid(f"{ATTENTION}.Wq"), grid(f"{ATTENTION}.Wk"), note="note_edit"),
    section(
        "section_scale", grid("softmax_demo.small"), op("softmax"), grid("softmax_demo.small_weights"),
        note="note_scale",
    ),
    section(
        None, grid("softmax_demo.small"), op("×"), grid("softmax_demo.factor"), op("="),
        grid("softmax_demo.large"), op("softmax"), grid("softmax_demo.large_weights"),
    ),
)

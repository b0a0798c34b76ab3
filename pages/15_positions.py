"""Lesson 15: positions; the same token at two places, and three ways of telling them apart."""

from ui import lesson, parts_charts
from ui.layout import Slider, grid, op, optional, section

NONE, LEARNED, LATER, TURNED = (
    f"positions.{way}.scores | positions.{way}.dot" for way in ("none", "learned", "later", "rope")
)
QUERY_AND_KEY = grid("positions.rope.q_rotated"), op("sign_transposed"), grid("positions.rope.k_rotated")
MATCHED = optional(op("÷ √D ="), scale_scores=True), optional(op("="), scale_scores=False)
OFFSET = grid("rope.offset | positions.rope.offset")

lesson.show(
    "positions",
    section(
        "section_same_row", grid("input_ids"), op("sign_selects"), grid("embedding.output"), note="note_same_row",
    ),
    section(
        "section_no_positions", grid("positions.none.q_heads"), op("sign_transposed"),
        grid("positions.none.k_heads"), *MATCHED, grid(NONE), note="note_no_positions",
    ),
    section(
        "section_learned", grid("position_embedding.weight | positions.learned.position_embedding.weight"),
        op("+ token ="), grid("positions.learned.stream"), op("sign_to_qk"), grid("positions.learned.q_heads"),
        op("sign_transposed"), grid("positions.learned.k_heads"), *MATCHED, grid(LEARNED),
        note="note_learned",
    ),
    section(
        "section_turned",
        optional(*QUERY_AND_KEY, op("÷ √D ="), grid(TURNED), scale_scores=True),
        optional(*QUERY_AND_KEY, op("="), grid(TURNED), scale_scores=False),
        note="note_turned",
    ),
    section(
        "section_one_later", grid(LEARNED), optional(op("sign_one_later"), grid(LATER)),
        note="note_one_later",
    ),
    section(
        "section_shift", optional(Slider(OFFSET, "slider_offset", 0, 20, 1), OFFSET, op("sign_to_angles"),
                       grid("rope.angles | positions.rope.angles"), op("sign_scores"), grid(TURNED)),
    ),
    chart=parts_charts.last_scores,
)

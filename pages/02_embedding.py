"""Lesson 2: embedding; ids are row numbers."""

from ui import lesson
from ui.layout import grid, op, optional, section

lesson.show(
    "embedding",
    section(
        "section_lookup", grid("input_ids"), op("sign_selects"), grid("embedding.weight"), op("="),
        grid("embedding.output"), note="note_rows",
    ),
    section(
        "section_place_sum",
        optional(
            grid("position_embedding.weight"), op("sign_first_rows"), grid("position_embedding.output"), op("+"),
            grid("embedding.output"), op("="), grid("embedding.sum"),
        ),
        note="note_place_sum",
    ),
)

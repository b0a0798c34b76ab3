"""Lesson 2: embedding; ids are row numbers."""

from ui import lesson
from ui.layout import grid, op, section

lesson.show(
    "embedding",
    section(
        "section_lookup", grid("input_ids"), op("sign_selects"), grid("embedding.weight"), op("="),
        grid("embedding.output"), note="note_rows",
    ),
)

"""Lesson 14: from characters to tokens; bytes, merges learned from a text, and ids that are names."""

from ui import lesson, tokens
from ui.layout import grid, op, section

lesson.show(
    "tokens",
    section(
        "section_ids", grid("input_ids"), op("sign_selects"), grid("embedding.weight"), op("="),
        grid("embedding.output"), note="note_ids",
    ),
    report=tokens.show,
)

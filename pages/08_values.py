"""Lesson 8: reading V; the weighted sum per head, the heads side by side, and Wo."""

from ui import lesson
from ui.layout import grid, op, optional, section

lesson.show(
    "values",
    section(
        "section_weighted", grid("layers.{layer}.attention.weights"), op("@"),
        grid("layers.{layer}.attention.v_heads"), op("="), grid("layers.{layer}.attention.head_output"),
        note="note_weighted",
    ),
    section(
        "section_merge", grid("layers.{layer}.attention.head_output", head="each"), op("sign_merge"),
        grid("layers.{layer}.attention.merged"), op("@"), grid("layers.{layer}.attention.Wo"),
        optional(op("+"), grid("layers.{layer}.attention.bo")), op("="), grid("layers.{layer}.attention.output"),
    ),
)

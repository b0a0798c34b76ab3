"""Lesson 9: residual; what each branch adds to the stream."""

from ui import lesson
from ui.layout import grid, op, section

lesson.show(
    "residual",
    section(
        "section_first_addition", grid("{input}", title="stream_in"), op("+"),
        grid("layers.{layer}.attention.output"), op("="), grid("layers.{layer}.residual1"),
        note="note_branch1",
    ),
    section(
        "section_second_addition", grid("layers.{layer}.residual1"), op("+"),
        grid("layers.{layer}.mlp.output"), op("="),
        grid("layers.{layer}.output", title="stream_out"), note="note_branch2",
    ),
)

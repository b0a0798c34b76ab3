"""Lesson 9: residual; what each branch adds to the stream."""

from ui import lesson
from ui.layout import grid, op, optional, section

lesson.show(
    "residual",
    section(
        "section_first_addition", grid("{input}", title="stream_in"), op("+"),
        grid("layers.{layer}.attention.output"), op("="), grid("layers.{layer}.residual1"),
        optional(op("sign_norm"), grid("layers.{layer}.norm1.output"), norm_placement="post"),
        note="note_branch1",
    ),
    section(
        "section_second_addition", grid("{middle}"), op("+"), grid("layers.{layer}.mlp.output"), op("="),
        optional(grid("layers.{layer}.residual2"), op("sign_norm"), grid("layers.{layer}.norm2.output"), op("=")),
        grid("layers.{layer}.output", title="stream_out"), note="note_branch2",
    ),
)

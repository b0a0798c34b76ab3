"""Lesson 10: MLP; every position alone, through F hidden units and back."""

from ui import lesson
from ui.layout import grid, op, optional, section

lesson.show(
    "mlp",
    section(
        "section_up", grid("{mlp_input}"), op("@"), grid("layers.{layer}.mlp.W_up"),
        optional(op("+"), grid("layers.{layer}.mlp.b_up")), op("="), grid("layers.{layer}.mlp.up"),
        op("{activation}"), grid("layers.{layer}.mlp.activation"), note="note_activation",
    ),
    section(
        "section_down", grid("layers.{layer}.mlp.activation"), op("@"), grid("layers.{layer}.mlp.W_down"),
        optional(op("+"), grid("layers.{layer}.mlp.b_down")), op("="), grid("layers.{layer}.mlp.output"),
    ),
)

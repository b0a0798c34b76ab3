"""Lesson 10: MLP; every position alone, through F hidden units and back."""

from ui import lesson
from ui.layout import grid, op, section

lesson.show(
    "mlp",
    section(
        "section_up", grid("layers.{layer}.norm2.output"), op("@"), grid("layers.{layer}.mlp.W_up"), op("="),
        grid("layers.{layer}.mlp.up"), op("ReLU"), grid("layers.{layer}.mlp.activation"), note="note_relu",
    ),
    section(
        "section_down", grid("layers.{layer}.mlp.activation"), op("@"), grid("layers.{layer}.mlp.W_down"),
        op("="), grid("layers.{layer}.mlp.output"),
    ),
)

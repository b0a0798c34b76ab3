"""Lesson 4: RMSNorm; every position's vector brought to one scale."""

from ui import lesson
from ui.layout import grid, op, section

lesson.show(
    "rmsnorm",
    section(
        "section_norm1", grid("{norm1_input}"), op("sign_mean_square"),
        grid("layers.{layer}.norm1.mean_square"), op("+"), grid("norm_epsilon"), op("√"),
        grid("layers.{layer}.norm1.rms"), note="note_norm1",
    ),
    section(
        "section_norm1_scale", grid("{norm1_input}"), op("÷"), grid("layers.{layer}.norm1.rms"),
        op("="), grid("layers.{layer}.norm1.normalized"), op("×"), grid("layers.{layer}.norm1.weight"),
        op("="), grid("layers.{layer}.norm1.output"),
    ),
)

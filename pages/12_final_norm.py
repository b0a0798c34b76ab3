"""Lesson 12: final norm; what happens to the logits when the stream grows, with it and without."""

from ui import charts, lesson
from ui.layout import Slider, grid, op, optional, section

WITH, WITHOUT = "scaled.with_norm", "scaled.without_norm"

lesson.show(
    "final_norm",
    section(
        "section_final_norm", grid("layers.{last}.output"),
        optional(op("sign_mean"), grid("final_norm.mean"), op("x − mean ="), grid("final_norm.centered")),
        op("sign_mean_square"), grid("final_norm.variance | final_norm.mean_square"), op("+"),
        grid("norm_epsilon"), op("√"), grid("final_norm.std | final_norm.rms"), note="note_final_norm",
    ),
    section(
        None, grid("final_norm.centered | layers.{last}.output"), op("÷"), grid("final_norm.std | final_norm.rms"),
        op("="), grid("final_norm.normalized"), op("×"), grid("final_norm.weight"),
        optional(op("+"), grid("final_norm.bias")), op("="), grid("final_norm.output"),
    ),
    section(
        "section_stretch", Slider(grid("scaled.factor"), "slider_factor", 0.1, 50, 0.1, logarithmic=True),
        grid("scaled.factor"), op("×"),
        grid("layers.{last}.output", position="last"), op("="), grid("scaled.stream"), note="note_stretch",
    ),
    section(
        "section_with_norm", grid("scaled.stream"),
        optional(op("−"), grid("scaled.norm.mean"), op("="), grid("scaled.norm.centered")), op("÷"),
        grid("scaled.norm.std | scaled.norm.rms"), op("="),
        grid("scaled.norm.normalized"), op("×"), grid("final_norm.weight"),
        optional(op("+"), grid("final_norm.bias")), op("="), grid("scaled.norm.output"), op("sign_head"),
        optional(grid(f"{WITH}.logits.uncapped"), op("sign_cap")), grid(f"{WITH}.logits"), op("softmax"),
        grid(f"{WITH}.probabilities"),
    ),
    section(
        "section_without_norm", grid("scaled.stream"), op("sign_head"),
        optional(grid(f"{WITHOUT}.logits.uncapped"), op("sign_cap")), grid(f"{WITHOUT}.logits"), op("softmax"),
        grid(f"{WITHOUT}.probabilities"),
    ),
    chart=charts.scaled_probabilities,
)

"""Lesson 12: final norm; what happens to the logits when the stream grows, with it and without."""

from ui import charts, lesson
from ui.layout import Slider, grid, op, section

lesson.show(
    "final_norm",
    section(
        "section_final_norm", grid("layers.{last}.output"), op("sign_mean_square"),
        grid("final_norm.mean_square"), op("+"), grid("norm_epsilon"), op("√"),
        grid("final_norm.rms"),
    ),
    section(
        None, grid("layers.{last}.output"), op("÷"), grid("final_norm.rms"), op("="),
        grid("final_norm.normalized"), op("×"), grid("final_norm.weight"), op("="), grid("final_norm.output"),
    ),
    section(
        "section_stretch", Slider(grid("scaled.factor"), "slider_factor", 0.1, 50, 0.1, logarithmic=True),
        grid("scaled.factor"), op("×"),
        grid("layers.{last}.output", position="last"), op("="), grid("scaled.stream"), note="note_stretch",
    ),
    section(
        "section_with_norm", grid("scaled.stream"), op("÷"), grid("scaled.norm.rms"), op("="),
        grid("scaled.norm.normalized"), op("×"), grid("final_norm.weight"), op("="),
        grid("scaled.norm.output"), op("sign_head"), grid("scaled.with_norm.logits"), op("softmax"),
        grid("scaled.with_norm.probabilities"),
    ),
    section(
        "section_without_norm", grid("scaled.stream"), op("sign_head"), grid("scaled.without_norm.logits"),
        op("softmax"), grid("scaled.without_norm.probabilities"),
    ),
    chart=charts.scaled_probabilities,
)

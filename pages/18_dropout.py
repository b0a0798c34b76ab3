"""Lesson 18: dropout; a mask in training, its scaling, and nothing at inference."""

from ui import lesson, parts_charts
from ui.layout import Slider, grid, op, optional, section

OUTPUT = "layers.{last}.mlp.output"

lesson.show(
    "dropout",
    section(
        "section_mask_drawn", Slider(grid("dropout.p"), "slider_p", 0, 0.9, 0.05),
        Slider(grid("dropout.seed"), "slider_seed", 0, 99, 1),
        grid("dropout.draws"), op("≥"), grid("dropout.p"), op("="), grid("dropout.kept"), op("÷"),
        grid("dropout.share_kept"), op("="), grid("dropout.mask"), note="note_mask_drawn",
    ),
    section(
        "section_training", grid(OUTPUT, title="title_h_ffn"), op("× mask ="),
        grid("dropout.dropped"), optional(op("+"), grid("dropout.h_att")), op("="), grid("dropout.h_final"),
        note="note_training",
    ),
    section(
        "section_inference", grid("layers.{last}.residual2 | layers.{last}.output", title="title_inference"),
        note="note_inference",
    ),
    section(
        "section_many_masks", grid(OUTPUT, title="title_h_ffn", position="last"), op("×"),
        grid("dropout.many.mean_mask"), op("="), grid("dropout.many.mean_dropped"), note="note_many_masks",
    ),
    chart=parts_charts.training_and_inference,
)

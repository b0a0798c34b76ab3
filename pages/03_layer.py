"""Lesson 3: a Transformer layer; two branches off one stream."""

from ui import lesson
from ui.layout import Flow, grid, op, section

lesson.show(
    "layer",
    section("section_layer_flow", Flow("layer"), note="note_flow"),
    section(
        "section_stream", grid("{input}", title="stream_in"), op("+"),
        grid("layers.{layer}.attention.output"), op("="), grid("layers.{layer}.residual1"), op("+"),
        grid("layers.{layer}.mlp.output"), op("="),
        grid("layers.{layer}.output", title="stream_out"),
    ),
)

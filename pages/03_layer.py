"""Lesson 3: a Transformer layer; two branches off one stream."""

from ui import lesson
from ui.layout import Flow, grid, op, optional, section

ATTENTION, MLP = "layers.{layer}.attention.output", "layers.{layer}.mlp.output"

lesson.show(
    "layer",
    section("section_layer_flow", Flow("layer"), note="note_flow"),
    section(
        "section_stream", grid("{input}", title="stream_in"),
        optional(op("+"), grid(ATTENTION), op("="), grid("layers.{layer}.residual1"), residual=True),
        optional(op("sign_becomes"), grid(ATTENTION), residual=False),
        optional(op("sign_norm"), grid("layers.{layer}.norm1.output"), norm_placement="post"),
        optional(op("+"), grid(MLP), residual=True),
        optional(op("sign_becomes"), grid(MLP), residual=False),
        optional(op("="), grid("layers.{layer}.residual2"), residual=True),
        optional(op("sign_norm"), grid("layers.{layer}.norm2.output"), norm_placement="post"),
        op("="), grid("layers.{layer}.output", title="stream_out"), note="note_stream",
    ),
)

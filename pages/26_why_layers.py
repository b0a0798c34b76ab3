"""Lesson 26: why many layers, why an MLP after attention; leave a part out and see what changes."""

from ui import lesson, why_charts
from ui.layout import Rows, Stages, Switch, grid, op, section

ATTENTION, MLP = grid("layers.{each}.attention.output"), grid("layers.{each}.mlp.output")
WITHOUT = "why_layers.layers.{layer}.mlp"

lesson.show(
    "why_layers",
    section(
        "section_layers_parts", Switch(ATTENTION, "switch_layers_attention", 0.0),
        Switch(MLP, "switch_layers_mlp", 0.0), Switch(ATTENTION, "switch_layers_layer", 0.0, also=(MLP,)),
        note="note_layers_parts",
    ),
    section(None, ATTENTION, MLP),
    section(
        "section_layers_stream", Stages("stages_title"),
        grid("final_norm.output | layers.{last}.output", position="last"), op("sign_head"),
        grid("logits", position="last"), op("softmax"), grid("probabilities", position="last"),
        note="note_layers_stream",
    ),
    section(
        "section_layers_head", Switch(grid("layers.{layer}.attention.head_output"), "switch_layers_head", 0.0),
        grid("layers.{layer}.attention.weights"), op("@"), grid("layers.{layer}.attention.v_heads"), op("="),
        grid("layers.{layer}.attention.head_output"), note="note_layers_head",
    ),
    section(
        "section_layers_activation", grid(f"{WITHOUT}.W_up_down", title="title_layers_one_matrix"),
        Rows("title_layers_mlp_output", (
            ("row_layers_as_it_is", grid("layers.{layer}.mlp.output", position="last")),
            ("row_layers_without_activation", grid(f"{WITHOUT}.output", position="last")),
            ("row_layers_one_matrix", grid(f"{WITHOUT}.one_matrix", position="last")),
        )),
        Rows("title_layers_probabilities", (
            ("row_layers_as_it_is", grid("probabilities", position="last")),
            ("row_layers_without_activation", grid("why_layers.probabilities", position="last")),
        )),
        note="note_layers_activation",
    ),
    chart=why_charts.parts_left_out,
)

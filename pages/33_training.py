"""Lesson 33: a training run; step after step on one sentence, and every number scrubbed through time."""

from engine.optimizers import KINDS
from ui import lesson, step_choice, steps, training_cards
from ui.layout import Dial, grid, op, optional, section

SETTINGS = ("learning_rate", "momentum", "beta1", "beta2", "weight_decay", "clip")
LAYER, ATTENTION, MLP = "layers.{layer}.", "layers.{layer}.attention.", "layers.{layer}.mlp."

lesson.show(
    "training",
    section("section_training_time", Dial("time", "slider_time"), note="note_training_time"),
    section(
        None, grid("targets"), op("→"), grid("loss.target_probability"), op("−ln"), grid("loss.per_position"),
        op("→"), grid("loss"), grid("probabilities", position="last"),
    ),
    section(
        "section_training_settings", *(optional(slider) for slider in steps.sliders(*SETTINGS)),
        note="note_training_settings",
    ),
    section(
        "section_training_tables", grid("embedding.weight"), optional(grid("position_embedding.weight")),
        optional(grid("final_norm.weight")), optional(grid("final_norm.bias")), optional(grid("lm_head.weight")),
        note="note_training_tables",
    ),
    section(
        "section_training_attention", optional(grid(f"{LAYER}norm1.weight")), optional(grid(f"{LAYER}norm1.bias")),
        *(grid(f"{ATTENTION}W{letter}") for letter in "qkvo"),
        *(optional(grid(f"{ATTENTION}b{letter}")) for letter in "qkvo"), note="note_training_attention",
    ),
    section(
        "section_training_mlp", optional(grid(f"{LAYER}norm2.weight")), optional(grid(f"{LAYER}norm2.bias")),
        grid(f"{MLP}W_up"), optional(grid(f"{MLP}b_up")), grid(f"{MLP}W_down"), optional(grid(f"{MLP}b_down")),
    ),
    section(
        "section_training_activations", grid("{input}"), op("→"), grid(f"{ATTENTION}weights"), op("→"),
        grid(f"{MLP}activation"), op("→"), grid(f"{LAYER}output"), note="note_training_activations",
    ),
    section(
        "section_training_step", grid("optimizer.gradient_length", title="title_gradient_length"),
        grid("optimizer.clip_factor", title="title_clip_factor"), note="note_training_step",
    ),
    section(None, *(optional(steps.table(kind)) for kind in KINDS), optional(steps.corrections())),
    panel=step_choice.run_panel, report=training_cards.show,
)

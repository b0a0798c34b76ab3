"""Lesson 32: one step of the optimizer; from a gradient to a new value by SGD, momentum and AdamW."""

from engine.optimizers import ADAMW, KINDS, MOMENTUM, SGD
from ui import lesson, optimizer_cards, step_choice, steps
from ui.layout import grid, op, section

SETTINGS = ("learning_rate", "momentum", "beta1", "beta2", "weight_decay")

lesson.show(
    "optimizer",
    section(
        "section_step_gradient", grid("{parameter}"), op("→"), grid("gradient.{parameter}"), note="note_step_gradient",
    ),
    section("section_step_clip", *steps.sliders("clip"), note="note_step_clip"),
    section(
        None, grid("optimizer.gradient_length", title="title_gradient_length"), op("→"),
        grid("optimizer.clip_factor", title="title_clip_factor"), op("× ∂loss/∂p ="),
        grid("optimizer.{parameter}.gradient", title="title_clipped"),
    ),
    section("section_step_settings", *steps.sliders(*SETTINGS), note="note_step_settings"),
    section(
        "section_step_sgd", steps.table(SGD), steps.table(MOMENTUM),
        note="note_step_sgd",
    ),
    section("section_step_adamw", steps.table(ADAMW), note="note_step_adamw"),
    section(None, steps.corrections(), note="note_step_corrections"),
    section(
        "section_step_new", *(
            grid(f"optimizer.{kind}.{{parameter}}.updated", title=f"optimizer_{kind}") for kind in KINDS
        ), note="note_step_new",
    ),
    panel=step_choice.step_panel, report=optimizer_cards.report,
)

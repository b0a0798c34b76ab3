"""Lesson 28: the whole system; training and inference around the model, with the state of each box."""

from ui import lesson, rankings, steps, target_choice
from ui.layout import Flow, section

lesson.show(
    "system",
    section(None, Flow("system"), note="note_system"),
    section(
        "section_system_settings", *steps.sliders("learning_rate", "clip"), *rankings.SLIDERS,
        note="note_system_settings",
    ),
    panel=target_choice.panel,
)

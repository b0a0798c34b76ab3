"""Lesson 28: the whole system; training and inference around the model, with the state of each box."""

from ui import lesson, rankings, target_choice
from ui.layout import Flow, Slider, grid, section

LEARNING_RATE = Slider(grid("optimizer.learning_rate"), "slider_learning_rate", 0.0001, 1, 0.0001, logarithmic=True)

lesson.show(
    "system",
    section(None, Flow("system"), note="note_system"),
    section("section_system_settings", LEARNING_RATE, *rankings.SLIDERS, note="note_system_settings"),
    panel=target_choice.panel,
)

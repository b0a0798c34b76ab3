"""Lesson 11: layer after layer; one position's stream on its way through the model."""

from ui import lesson
from ui.layout import STREAM, Stages, grid, section

lesson.show(
    "layers",
    section("section_stages", Stages("stages_title"), note="note_stages"),
    section("section_outputs", grid(STREAM), grid("layers.{each}.output"), note="note_outputs"),
)

"""Lesson 11: layer after layer; one position's stream on its way through the model."""

from ui import lesson
from ui.layout import Stages, grid, section

lesson.show(
    "layers",
    section("section_stages", Stages("stages_title"), note="note_stages"),
    section("section_outputs", grid("embedding.output"), grid("layers.{each}.output"), note="note_outputs"),
)

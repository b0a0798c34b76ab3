"""Lesson 29: data and targets; a text cut into windows, whose targets are the same text one token further on."""

from ui import data_cards, lesson
from ui.layout import grid, op, section

lesson.show(
    "data",
    section(
        "section_data_row", grid("input_ids", columns="position"), op("→"), grid("targets", columns="position"),
        note="note_data_row",
    ),
    section(
        "section_data_questions", grid("probabilities"), op("sign_target"), grid("targets"), op("="),
        grid("loss.target_probability"), note="note_data_questions",
    ),
    report=data_cards.show,
)

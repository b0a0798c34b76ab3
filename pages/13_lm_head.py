"""Lesson 13: LM head; one dot product a candidate, and softmax over the whole vocabulary."""

from ui import charts, lesson
from ui.layout import grid, op, optional, section

lesson.show(
    "lm_head",
    section(
        "section_candidates", grid("final_norm.output | layers.{last}.output", position="last"), op("×"),
        grid("lm_head.weight"), op("="), grid("contributions"), op("Σ"),
        optional(grid("logits.uncapped", position="last"), op("sign_cap")), grid("logits", position="last"),
        note="note_contributions",
    ),
    section("section_logits", grid("logits"), op("softmax"), grid("probabilities"), note="note_logits"),
    section(
        "section_shares", grid("logits"), op("−"), grid("probabilities.max"), op("exp"),
        grid("probabilities.exp"), op("÷"), grid("probabilities.sum"), op("="), grid("probabilities"),
        note="note_shares",
    ),
    chart=charts.next_token_bars,
)
